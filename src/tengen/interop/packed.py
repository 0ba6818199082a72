"""Files that may be packed with gzip."""

from pathlib import Path

from tengen import files
from tengen.errors import TengenError
from tengen.files.packed import unpack

_MOST_BYTES = 2 * 1024**3  # of an unpacked file
_SMALL, _RATIO = 2**28, 50  # a file may unpack to the first, or to so many times its size: weights hardly shrink


def read(path: Path, what: str) -> bytes:
    """The content of a file, unpacked if it is a gzip file. `what` it should be is for messages of TengenError."""
    try:
        data = files.read_bytes(path, _MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES:,} bytes")
        return bytes(unpack(data, min(_MOST_BYTES, max(_SMALL, _RATIO * len(data)))))
    except ValueError as error:
        raise TengenError(f"{path}: not a whole {what}: {error}") from None
