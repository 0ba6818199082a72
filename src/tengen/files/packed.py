"""Packed files, whose data may be damaged, cut off or far larger than it looks."""

import gzip
import io
import zlib
from pathlib import Path
from typing import Any

from tengen import files
from tengen.errors import TengenError

try:
    from zlib_ng import zlib_ng as fast_zlib
except ImportError:  # there is no build of it here: unpacking takes five to eight times as long
    fast_zlib = zlib
ERRORS: Any = (fast_zlib.error, zlib.error, OSError)  # damaged data
# Neither module has a public way to unpack into memory that is there already; GzipFile copies what it has unpacked.
_Reader: Any = getattr(fast_zlib, "_GzipReader", None) or (lambda data: gzip.GzipFile(fileobj=io.BytesIO(data)))


def reader(data: bytes) -> Any:
    """A gzip file in memory, to be unpacked by its `readinto`: ERRORS if it is damaged, EOFError if it is cut off."""
    return _Reader(data)


class SmallReads:
    """An open file as `tarfile` and `zipfile` read it. Headers that claim to be gigabytes long are refused."""

    def __init__(self, file: Any, limit: int) -> None:
        self._file, self._limit = file, limit
        self.seek, self.tell = file.seek, file.tell

    def read(self, count: int = -1) -> bytes:
        if count > self._limit:
            raise ValueError(f"a header of {count:,} bytes, expected at most {self._limit:,}")
        return self._file.read(count)  # without a count, the libraries read a few bytes at the end


class UnpackBuffer:
    """Memory for unpacked data that is used again and again by one thread.

    New memory for every file would cost more than unpacking it: the system clears each page when it is first used.
    """

    def __init__(self) -> None:
        self._bytes = bytearray(1 << 20)

    def fill(self, reader: Any, most: int) -> memoryview:
        """At most so many bytes of a reader, valid until the next time. If the memory is too small, there is more from
        now on, and results so far keep the old."""
        size = 0
        while size < most:
            if size == len(self._bytes):
                larger = bytearray(min(2 * size, most))
                larger[:size] = self._bytes
                self._bytes = larger
            count = reader.readinto(memoryview(self._bytes)[size:most])
            if not count:
                break
            size += count
        return memoryview(self._bytes)[:size]


def unpack(data: bytes, most: int, room: UnpackBuffer | None = None) -> bytes | memoryview:
    """The data, unpacked if it is a gzip stream. ValueError if that is damaged, or has more than `most` bytes.

    With `room`, the result is only good until that is used again.
    """
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        found = (room or UnpackBuffer()).fill(reader(data), most + 1)
    except EOFError:
        raise ValueError("the gzip file is cut off; copy or download it again") from None
    except ERRORS as error:
        raise ValueError(f"not a good gzip file ({error})") from None
    if len(found) > most:
        raise ValueError(f"unpacks to more than {most:,} bytes")
    return found


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


def write(path: Path, data: bytes) -> None:
    """Writes a file, gzipped if its name ends in .gz; the same data give the same file."""
    files.write_bytes(path, gzip.compress(data, 6, mtime=0) if path.suffix == ".gz" else data)
