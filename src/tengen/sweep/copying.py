"""Copies of run directories, to continue from there with other settings."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tengen import files
from tengen.config.source import RUN_FILE
from tengen.errors import TengenError

# The copy gets its own configuration, and is rated by its own matches: otherwise games would count twice.
_LEFT = (RUN_FILE, ".lock", "ratings")


def copy_run(source: Path, target: Path) -> None:
    """Copy a run, unless `target` exists; the copy appears when it is complete.

    Rows, which take most of the space and never change once written, are hard links where that is possible.
    """
    if target.exists():
        return
    for left in target.parent.glob(f".{target.name}.*.part"):  # of a copy that was interrupted
        shutil.rmtree(left, ignore_errors=True)

    def fill(place: Path) -> None:
        shutil.copytree(source, place, ignore=_ignored(source), copy_function=_copy, dirs_exist_ok=True)

    try:
        files.write_folder(target, fill)
    except OSError as error:
        raise TengenError(f"{source}: cannot be copied to {target}: {_why(error.__cause__ or error)}") from None


def _ignored(top: Path) -> Callable[[str, list[str]], list[str]]:
    def ignore(folder: str, names: list[str]) -> list[str]:
        half = [name for name in names if name.startswith(".") and name.endswith(".part")]
        return [*half, *(name for name in names if name in _LEFT and Path(folder) == top)]

    return ignore


def _copy(source: str, target: str) -> str:
    if source.endswith(".npz"):
        try:
            os.link(source, target)
            return target
        except OSError:  # another disk, or one without links
            pass
    files.check_regular(source)
    return shutil.copy2(source, target)


def _why(error: BaseException) -> str:
    if isinstance(error, shutil.Error) and error.args and error.args[0]:
        return str(error.args[0][0][2])
    return getattr(error, "strerror", None) or str(error)
