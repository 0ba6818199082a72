"""The Python in a page of the documentation, run as it is written."""

import re
import runpy
from pathlib import Path
from typing import Any

from tests.helpers import paths

DOCS = paths.DOCS
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def python(page: str) -> str:
    """All Python blocks of a page, one after the other. Every line has the number that it has in the page."""
    text = (DOCS / page).read_text()
    blocks = [(text[: found.start(1)].count("\n"), found[1]) for found in _BLOCK.finditer(text)]
    assert blocks, f"{page} has no Python"
    lines: list[str] = []
    for number, block in blocks:
        lines += [""] * (number - len(lines)) + block.splitlines()
    return "\n".join(lines) + "\n"


def run(page: str, folder: Path, monkeypatch: Any) -> dict[str, Any]:
    """Run the Python of a page with `folder` as the working directory; gives the names that it has defined."""
    file = folder / f"{Path(page).stem}_page.py"
    file.write_text(python(page))
    monkeypatch.chdir(folder)
    return runpy.run_path(str(file))
