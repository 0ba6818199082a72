"""Folders of runs, which may be missing or unreadable while somebody looks at them."""

import contextlib
from pathlib import Path

from tengen import files


def inside(folder: Path) -> list[Path]:
    """What is in a folder, without links that lead out of it; nothing if it cannot be read."""
    with contextlib.suppress(OSError):
        return [path for path in files.inside(folder) if not leads_out(path, folder)]
    return []


def leads_out(path: Path, folder: Path) -> bool:
    """Whether a path in a folder is a link to something that is not in that folder."""
    return path.is_symlink() and not path.resolve().is_relative_to(folder.resolve())
