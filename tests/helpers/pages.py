"""The code blocks of the documentation, and how they are run or checked.

Every block is fenced and names its language: `python` is run, all blocks of a page in one namespace; `sh` is parsed by
the command line; `yaml`, `toml` and `json` are read; `text` is output or a drawing. A comment before a block, which
readers do not see, can say more:

    <!-- setup: ... -->       Python that is run before the block: names that the reader has, small sizes
    <!-- over: go9 -->        YAML that is part of a configuration: checked with the rest of this one
    <!-- not run: ... -->     the reason why a block is not run
"""

import re
import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers import paths

DOCS = paths.DOCS
PAGES = [paths.ROOT / "README.md", *sorted(DOCS.rglob("*.md")), *sorted(paths.EXAMPLES.rglob("*.md"))]
_FENCE = re.compile(r"( *)(```+)\s*(\S*)")
_COMMENT = re.compile(r"<!-- (setup|over|not run):(.*?)-->\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int  # of its first line, from 0
    language: str
    text: str
    note: str = ""  # "setup", "over" or "not run", if there is such a comment
    about: str = ""  # the rest of the comment
    about_line: int = 0

    def __str__(self) -> str:
        return f"{self.page.relative_to(paths.ROOT)}:{self.line}"


def blocks(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page, or those in some languages."""
    lines = page.read_text("utf-8").split("\n")
    found: list[Block] = []
    begun: tuple[int, str, str, str] | None = None  # first line, indentation, fence, language
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if begun is None and fence:
            begun = (number + 1, fence[1], fence[2], fence[3])
        elif begun and line.strip() == begun[2]:
            first, indentation, _, language = begun
            text = "\n".join(each.removeprefix(indentation) for each in lines[first:number]) + "\n"
            before = "\n".join(lines[: first - 1])
            comment = _COMMENT.search(before)
            said = (comment[1], comment[2].strip("\n"), before[: comment.start(2)].count("\n")) if comment else ()
            found.append(Block(page, first, language, text, *said))
            begun = None
    assert begun is None, f"{page}: the block that begins in line {begun} does not end"
    return [block for block in found if not languages or block.language in languages]


def python(page: Path) -> str:
    """All that is to be run of a page, with set-up. Every line has the number that it has in the page."""
    lines: list[str] = []

    def put(number: int, text: str) -> None:
        lines.extend([""] * (number - len(lines)))
        lines.extend(text.splitlines())

    for block in blocks(page, "python"):
        if block.note == "setup":
            put(block.about_line + (0 if block.about[:1] == " " else 1), block.about.strip())
        if block.note != "not run":
            put(block.line, block.text)
    return "\n".join(lines) + "\n"


def run(page: Path, folder: Path, monkeypatch: Any) -> dict[str, Any]:
    """Run the Python of a page with `folder` as the working directory; gives the names that it has defined."""
    file = folder / f"{page.stem.replace('-', '_')}_page.py"
    file.write_text(python(page))
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    return runpy.run_path(str(file))
