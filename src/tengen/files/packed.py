"""Unpacks gzip data, which may be damaged, cut off or far larger than it looks."""

import zlib

try:
    from zlib_ng import zlib_ng as _zlib  # type: ignore[reportMissingImports] - two to three times as fast
except ModuleNotFoundError:
    _zlib = zlib


_PIECE = 1 << 15  # bytes that are unpacked at a time


class Room:
    """Memory for unpacked data that is used again and again by one thread.

    New memory for every file would cost more than unpacking it: the system clears each page when it is first used.
    """

    def __init__(self) -> None:
        self._bytes = bytearray(1 << 20)

    def put(self, piece: bytes, at: int) -> None:
        """Write a piece. If the memory is too small, there is more from now on, and results so far keep the old."""
        if at + len(piece) > len(self._bytes):
            self._bytes = self._bytes[:at] + bytearray(at + len(piece))
        self._bytes[at : at + len(piece)] = piece

    def first(self, size: int) -> memoryview:
        """What was written, valid until the next time."""
        return memoryview(self._bytes)[:size]


def unpack(data: bytes, most: int, room: Room | None = None) -> bytes | memoryview:
    """The data, unpacked if it is a gzip stream. ValueError if that is damaged, or has more than `most` bytes.

    With `room`, the result is only good until that is used again.
    """
    if data[:2] != b"\x1f\x8b":
        return data
    unpacker, rest, size, found = _zlib.decompressobj(31), data, 0, b""
    try:
        while rest and size <= most and not unpacker.eof:
            found = unpacker.decompress(rest, most + 1 if room is None else _PIECE)
            rest = unpacker.unconsumed_tail
            if room is not None:
                room.put(found, size)
            size += len(found)
    except _zlib.error as error:
        raise ValueError(f"not a good gzip file ({error})") from None
    if size > most:
        raise ValueError(f"unpacks to more than {most:,} bytes")
    if not unpacker.eof:
        raise ValueError("the gzip file is cut off; copy or download it again")
    return found if room is None else room.first(size)
