"""If training diverges, a file in RUN/train/<trainer> says so until it is started again."""

import contextlib
from pathlib import Path

from tengen import schema
from tengen.errors import Diverged, TengenError

_NAME = "diverged.json"


def note(folder: Path, message: str) -> None:
    """Write the message, which says at which step training diverged and how to go on, if that is possible."""
    with contextlib.suppress(TengenError, OSError):
        schema.write_json(folder / _NAME, {"message": message})


def forget(folder: Path) -> None:
    with contextlib.suppress(OSError):
        (folder / _NAME).unlink(missing_ok=True)


def read(base: Path) -> str:
    """The message of the trainer that diverged; empty if none did."""
    for path in sorted(base.glob(f"train/*/{_NAME}")):
        with contextlib.suppress(TengenError, OSError):
            found = schema.read_json(dict[str, str], path, limit=100_000).get("message", "")
            if found.startswith(Diverged.BEGINNING):
                return found
    return ""
