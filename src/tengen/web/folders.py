"""Which runs and matches are in the folders that a user names; folders may be missing or unreadable meanwhile."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tengen import files
from tengen.config.source import RUN_FILE
from tengen.errors import TengenError
from tengen.match.match_games import ABOUT

_DEPTH = 3  # folders below a named one in which runs are looked for
_MOST = 2000


def inside(folder: Path) -> list[Path]:
    """What is in a folder, without links that lead out of it; nothing if it cannot be read."""
    with contextlib.suppress(OSError):
        return [path for path in files.inside(folder) if not leads_out(path, folder)]
    return []


def leads_out(path: Path, folder: Path) -> bool:
    return path.is_symlink() and not path.resolve().is_relative_to(folder.resolve())


@dataclass(frozen=True)
class FoundRuns:
    """Runs by the names that the page has for them, and folders of matches."""

    runs: dict[str, Path]
    matches: tuple[Path, ...] = ()

    @classmethod
    def of(cls, named: Sequence[Path]) -> Self:
        """The runs and matches at or below these paths. TengenError if a path is no folder."""
        runs: list[Path] = []
        matches: list[Path] = []
        for folder in named:
            if not folder.is_dir():
                what = "is a file, expected the folder of a run" if folder.exists() else "there is no such folder"
                raise TengenError(f"{folder}: {what}")
            _look(folder, _DEPTH, runs, matches)
        return cls(_ids(list(dict.fromkeys(runs))), tuple(dict.fromkeys(matches)))


def _look(folder: Path, depth: int, runs: list[Path], matches: list[Path]) -> None:
    """Links are not followed, so that nothing outside of the named folders is shown."""
    if (folder / RUN_FILE).is_file():
        runs += [] if leads_out(folder / RUN_FILE, folder) else [folder]
        return
    if (folder / ABOUT).is_file():
        matches.append(folder)
        return
    if depth == 0 or len(runs) >= _MOST:
        return
    with contextlib.suppress(OSError):
        for path in sorted(folder.iterdir()):
            if not path.name.startswith(".") and path.is_dir() and not path.is_symlink():
                _look(path, depth - 1, runs, matches)


def _ids(runs: list[Path]) -> dict[str, Path]:
    """Short names: the folder's, with as many of those above it as make it unique."""
    found: dict[str, Path] = {}
    for base in runs:
        parts = [part for part in base.resolve().parts if part != "/"]
        length = 1
        while (id := "/".join(parts[-length:])) in found and length < len(parts):
            length += 1
        found[id] = base
    return found
