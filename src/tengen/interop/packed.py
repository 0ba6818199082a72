"""Files that may be packed with gzip."""

import zlib
from pathlib import Path

from tengen import files
from tengen.errors import TengenError

_MOST_BYTES = 2 * 1024**3  # of an unpacked file


def read(path: Path, what: str) -> bytes:
    """The content of a file, unpacked if it is a gzip file. `what` it should be is for messages of TengenError."""
    data = files.read_bytes(path)
    if data[:2] != b"\x1f\x8b":
        return data
    unpacker = zlib.decompressobj(wbits=31)
    try:
        found = unpacker.decompress(data, _MOST_BYTES)
    except zlib.error as error:
        raise TengenError(f"{path}: not a whole gzip file ({error})") from None
    if unpacker.unconsumed_tail:
        raise TengenError(f"{path}: unpacks to more than {_MOST_BYTES:,} bytes, which no {what} does")
    if not unpacker.eof:
        raise TengenError(f"{path}: the gzip file is cut off; copy or download it again")
    return found
