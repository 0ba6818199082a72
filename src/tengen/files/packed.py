"""Unpacks gzip data, which may be damaged, cut off or far larger than it looks."""

import zlib

try:
    from zlib_ng import zlib_ng as _zlib  # type: ignore[reportMissingImports] - two to three times as fast
except ModuleNotFoundError:
    _zlib = zlib


def unpack(data: bytes, most: int) -> bytes:
    """The data, unpacked if it is a gzip stream. ValueError if that is damaged, or has more than `most` bytes."""
    if data[:2] != b"\x1f\x8b":
        return data
    unpacker = _zlib.decompressobj(31)
    try:
        found = unpacker.decompress(data, most)
    except _zlib.error as error:
        raise ValueError(f"not a good gzip file ({error})") from None
    if unpacker.unconsumed_tail:
        raise ValueError(f"unpacks to more than {most:,} bytes")
    if not unpacker.eof:
        raise ValueError("the gzip file is cut off; copy or download it again")
    return found
