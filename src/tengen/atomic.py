"""Files that are either complete or not there."""

import contextlib
import os
import secrets
from pathlib import Path


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that nobody ever sees part of it, whatever happens in between.

    Until all of it is on the disk it has a hidden name of its own in the same folder. Raises OSError, and
    then leaves nothing behind.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut, on the file systems that can promise it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
