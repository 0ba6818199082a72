"""Folders of runs, which may be missing or unreadable while somebody looks at them."""

import contextlib
from pathlib import Path

from tengen import files


def inside(folder: Path) -> list[Path]:
    """What is in a folder; nothing if it cannot be read."""
    with contextlib.suppress(OSError):
        return files.inside(folder)
    return []
