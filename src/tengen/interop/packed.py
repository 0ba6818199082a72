"""Files that may be packed with gzip."""

from pathlib import Path

from tengen import files
from tengen.errors import TengenError
from tengen.files.packed import unpack

_MOST_BYTES = 2 * 1024**3  # of an unpacked file


def read(path: Path, what: str) -> bytes:
    """The content of a file, unpacked if it is a gzip file. `what` it should be is for messages of TengenError."""
    try:
        return bytes(unpack(files.read_bytes(path), _MOST_BYTES))
    except ValueError as error:
        raise TengenError(f"{path}: not a whole {what}: {error}") from None
