"""The arrays in an `.npz`, read from files that may be damaged or malicious.

The headers of a zip can be wrong on purpose: a few kilobytes may claim, or unpack to, gigabytes. So everything is first
compared with something that cannot lie, the size of the file (docs/data.md): deflating shrinks no more than 1032 times.

Python's `zipfile` only lists the members. Unpacking is faster here, which matters when thousands of chunks are read.
"""

import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any, cast

import numpy as np

from tengen import files
from tengen.errors import OptionError
from tengen.files import packed

_LOCAL = struct.Struct("<4s4xH4xI8xHH")  # where a member lies: signature, method, checksum, lengths of name and extras
_END = struct.Struct("<4s8xIIH")  # signature, size and place of the list of members, length of a comment
_SIZES64 = struct.Struct("<HHQQ")  # an extra: number 1, length, size, size as stored
_METHODS = {12: "bzip2", 14: "LZMA", 93: "Zstandard", 95: "xz"}
_LIST_LIMIT = 2**18  # bytes: a chunk has some fifteen members, which take one thousand
DEFLATE_LIMIT = 1032  # by how much deflating can shrink
_BLOCK = 2**20  # bytes that are read at a time
_GZIP = b"\x1f\x8b\x08" + bytes(7)  # what a gzip file begins with
_START = 2**13  # packed bytes that are enough for the header of an array
_FIRST = 2**14  # bytes of a peek
_NPY = b"\x93NUMPY\x01\x00"
HEADER_LIMIT = 4096  # bytes of an `.npy` file before its numbers
# A key of a header and its value, with the comma behind it. NumPy itself reads headers with `ast`, which in Python 3.11
# fails when several threads use it at once.
_ENTRY = re.compile(rb"""['"](\w+)['"] *: *(['"][<>|=]?[biuf]\d+['"]|False|True|\([\d, ]*\)) *,? *""")
Header = tuple[tuple[int, ...], np.dtype]
"""Shape and type of an array."""


class Archive:
    """The members of an open `.npz`. Raises OptionError for bad content, OSError for errors of the disk."""

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self._members = _members(file)
        self.sizes = {name: member.file_size for name, member in self._members.items()}  # in bytes, once unpacked
        self.largest_packed = max((member.compress_size for member in self._members.values()), default=0)
        self._headers: dict[str, Header] = {}

    def read(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """The array of that name, if it has that shape and type; only then is memory spent on it."""
        stream = self._numbers(name, shape, dtype)
        array = np.empty(shape, dtype)
        stream.fill(array.reshape(-1).view(np.uint8).data)
        stream.check()
        array.flags.writeable = False
        return array

    def blocks(self, name: str, shape: tuple[int, ...], dtype: np.dtype, rows: int) -> Iterator[tuple[int, np.ndarray]]:
        """The same in blocks of so many rows, each with the number of its first row, and valid until the next.

        All blocks have the same memory, because the system clears new memory, which takes as long as unpacking.
        """
        stream = self._numbers(name, shape, dtype)
        memory = np.empty((min(rows, shape[0]), *shape[1:]), dtype)
        for begin in range(0, shape[0], rows):
            block = memory[: shape[0] - begin]
            stream.fill(block.reshape(-1).view(np.uint8).data)
            yield begin, block
        stream.check()

    def header(self, name: str) -> Header:
        """Shape and type of the array of that name; its numbers are not unpacked."""
        if name not in self._headers:
            self._headers[name] = _header(self._stream(name, whole=False), name, None, np.dtype(np.uint8))
        return self._headers[name]

    def read_text(self, name: str, limit: int) -> bytes:
        """The array of that name, if it is UInt8[N] and its file has no more bytes than the limit."""
        stream = self._stream(name)
        if stream.left > limit:
            raise OptionError(f"{name}: expected at most {limit} bytes, got {stream.left}")
        header = _header(stream, name, None, np.dtype(np.uint8))
        wanted, text = (stream.left,), stream.take(stream.left)
        stream.check()
        if header != (wanted, np.uint8):
            raise OptionError(f"{name}: expected text as bytes")
        return text

    def _numbers(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> "_Stream":
        """The bytes of the array of that name, behind its header. OptionError if it has another shape or type."""
        stream = self._stream(name)
        found_shape, found_dtype = _header(stream, name, shape, dtype)
        if (found_shape, found_dtype) != (shape, dtype):
            wanted, found = f"{dtype} {list(shape)}", f"{found_dtype} {list(found_shape)}"
            raise OptionError(f"{name}: expected {wanted}, got {found}")
        size = math.prod(shape) * dtype.itemsize
        if size != stream.left:
            raise OptionError(f"{name}: expected {size} bytes of numbers, got {stream.left}")
        return stream

    def _stream(self, name: str, *, whole: bool = True) -> "_Stream":
        found = self._members.get(f"{name}.npy") or self._members.get(name)  # KataGo leaves the ending out
        if found is None:
            raise OptionError(f"expected one array per field, but {name}.npy is missing")
        return _Stream(self._file, found, whole)


class _Stream:
    """The unpacked bytes of a member, from its beginning; without `whole`, enough of them for the header."""

    def __init__(self, file: FileIO, member: zipfile.ZipInfo, whole: bool) -> None:
        self._file, self._member = file, member
        self.left = member.file_size
        self._checksum = 0
        self._inflated: Any = None
        file.seek(member.header_offset)
        local = file.read(_LOCAL.size) or b""
        if len(local) < _LOCAL.size:
            raise self._short()
        signature, method, _, named, more = _LOCAL.unpack(local)
        if signature != b"PK\x03\x04" or method != member.compress_type:
            raise OptionError(f"{member.filename}: is not where it should be")
        file.seek(member.header_offset + _LOCAL.size + named + more)
        if member.compress_type == zipfile.ZIP_DEFLATED:
            # As a gzip file, because gzip is what can be unpacked in place, and its checksum is compared on the way.
            data = file.read(member.compress_size if whole else min(member.compress_size, _START)) or b""
            end = struct.pack("<II", member.CRC, member.file_size & 0xFFFFFFFF)
            self._inflated = packed.reader(_GZIP + data + end * (len(data) == member.compress_size))

    def take(self, count: int) -> bytes:
        """The next bytes. OptionError if there are fewer, or if they cannot be read."""
        found = bytearray(min(count, self.left + 1))
        self.fill(memoryview(found))
        return bytes(found)

    def fill(self, view: memoryview) -> None:
        """The next bytes, as many as there is room for. OptionError if there are fewer, or if they cannot be read."""
        if len(view) > self.left:
            raise self._short()
        at = 0
        while at < len(view):
            piece = view[at : at + _BLOCK]
            count = self._file.readinto(piece) if self._inflated is None else self._unpack(view[at:])
            if not count:
                raise self._short()
            if self._inflated is None:
                self._checksum = packed.fast_zlib.crc32(piece[:count], self._checksum)
            at += count
        self.left -= at

    def check(self) -> None:
        """OptionError if there is more than was announced, or if the content is not what was written."""
        name, size = self._member.filename, self._member.file_size
        if self._inflated is None and self._checksum != self._member.CRC:
            raise OptionError(f"{name}: its checksum is wrong")
        if self._inflated is not None and self._unpack(memoryview(bytearray(1))):
            raise OptionError(f"{name}: unpacks to more than the {size} bytes it announces")

    def _unpack(self, view: memoryview) -> int:
        """Fill some of the view; none of it at the end, where the checksum is compared."""
        try:
            return self._inflated.readinto(view)
        except EOFError:
            raise self._short() from None
        except packed.ERRORS as error:
            why = "its checksum is wrong" if "CRC" in str(error) else f"cannot be unpacked: {error}"
            raise OptionError(f"{self._member.filename}: {why}") from None

    def _short(self) -> OptionError:
        return OptionError(f"{self._member.filename}: is cut short")


def peek(path: Path, name: str) -> tuple[int, bytes]:
    """The size of the file and the bytes of its first array. Reads the two ends of the file only.

    OSError if it cannot be read. OptionError if the array has another name, is packed or damaged, and if the file does
    not end with its list of members: then it was cut short, or was not written by Tengen.
    """
    size, first, last = files.read_ends(path, _FIRST, _END.size)
    try:
        end, length, place, comment = _END.unpack(last)
        signature, method, checksum, named, more = _LOCAL.unpack_from(first)
        start = _LOCAL.size + named
        number, _, unpacked, stored = _SIZES64.unpack_from(first, start)
        array = first[start + more : start + more + unpacked]
        (header,) = struct.unpack_from("<H", array, 8)
    except struct.error:
        raise OptionError("too short") from None
    whole = end == b"PK\x05\x06" and comment == 0 and place + length + _END.size == size
    plain = (
        signature == b"PK\x03\x04" and method == zipfile.ZIP_STORED and number == 1 and unpacked == stored == len(array)
    )
    if not (whole and plain and first[_LOCAL.size : start] == f"{name}.npy".encode()):
        raise OptionError(f"expected {name} first, as it is, and a list of members at the end")
    if zlib.crc32(array) != checksum or array[:8] != _NPY or b"'descr': '|u1'" not in array[10 : 10 + header]:
        raise OptionError(f"{name}: expected bytes with their checksum")
    return size, array[10 + header :]


def _members(file: FileIO) -> dict[str, zipfile.ZipInfo]:
    """All members by name. OptionError if their sizes cannot be true."""
    try:
        with zipfile.ZipFile(cast(Any, packed.SmallReads(file, _LIST_LIMIT))) as archive:
            listed, end = archive.infolist(), archive.start_dir
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        why = "" if "not a zip file" in str(error) else f": {error}"
        raise OptionError(f"not a zip file, or cut short{why}") from None
    members: dict[str, zipfile.ZipInfo] = {}
    for member in sorted(listed, key=lambda member: member.header_offset, reverse=True):
        name, size, stored = member.filename, member.file_size, member.compress_size
        if member.flag_bits & 1:
            raise OptionError(f"{name}: is encrypted")
        if name in members:
            raise OptionError(f"{name}: is there twice")
        if member.header_offset < 0 or member.header_offset + _LOCAL.size + len(name) + stored > end:
            raise OptionError(f"{name}: overlaps with what follows it")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            method = _METHODS.get(member.compress_type, f"method {member.compress_type}")
            raise OptionError(f"{name}: expected it stored or deflated, got {method}")
        if size > stored * DEFLATE_LIMIT or (member.compress_type == zipfile.ZIP_STORED and size != stored):
            raise OptionError(f"{name}: {stored} bytes cannot unpack to {size}")
        members[name] = member
        end = member.header_offset
    return members


def _header(stream: _Stream, name: str, shape: tuple[int, ...] | None, dtype: np.dtype) -> Header:
    """Shape and type as the `.npy` file says, which most probably are these; without a shape, a list of bytes."""
    start = stream.take(10)
    length = int.from_bytes(start[8:], "little")
    if start[:8] != _NPY:
        raise OptionError(f"{name}: expected a .npy file of version 1.0")
    if length > HEADER_LIMIT:
        raise OptionError(f"{name}: expected at most {HEADER_LIMIT} bytes before the numbers, got {length}")
    text = stream.take(length)
    shape = (stream.left,) if shape is None else shape
    sizes = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    if text.rstrip() == f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({sizes}), }}".encode():
        return shape, dtype
    found = dict(_ENTRY.findall(text))
    if set(found) != {b"descr", b"fortran_order", b"shape"} or _ENTRY.sub(b"", text).strip(b" \n") != b"{}":
        raise OptionError(f"{name}: expected the .npy header of plain numbers, got something else")
    if found[b"fortran_order"] != b"False":
        raise OptionError(f"{name}: expected numbers in C order")
    try:
        kind = np.dtype(found[b"descr"].strip(b"'\"").decode())
        return tuple(int(size) for size in found[b"shape"].strip(b"()").split(b",") if size.strip()), kind
    except (TypeError, ValueError) as error:
        raise OptionError(f"{name}: the header of its .npy cannot be understood: {error}") from None
