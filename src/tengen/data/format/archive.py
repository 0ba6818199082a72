"""The arrays in an `.npz`, read from files that may be damaged or malicious.

An `.npz` is a zip of `.npy` files. The headers of a zip can be wrong on purpose: a few kilobytes may claim, or unpack
to, gigabytes. So everything is first compared with something that cannot lie, the size of the file:

- members are stored or deflated, and deflating shrinks no more than 1032 times; other methods shrink without limit
- members do not overlap, so that all of them together are no longer than the file
- an array's shape and type are compared with what they must be before there is memory for it
- no more is unpacked than was announced

Python's `zipfile` only lists the members. Unpacking is faster here, which matters when thousands of chunks are read.
"""

import math
import re
import struct
import zipfile
import zlib
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
_BLOCK = 2**20  # bytes that are read or unpacked at a time
_PACKED = (2**10, 2**16)  # packed bytes that are read at first, which is enough for a header, and later
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
        self._headers: dict[str, Header] = {}

    def read(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """The array of that name, if it has that shape and type; only then is memory spent on it."""
        stream = self._stream(name)
        found_shape, found_dtype = _header(stream, name, shape, dtype)
        if (found_shape, found_dtype) != (shape, dtype):
            wanted, found = f"{dtype} {list(shape)}", f"{found_dtype} {list(found_shape)}"
            raise OptionError(f"{name}: expected {wanted}, got {found}")
        size = math.prod(shape) * dtype.itemsize
        if size != stream.left:
            raise OptionError(f"{name}: expected {size} bytes of numbers, got {stream.left}")
        array = np.empty(shape, dtype)
        stream.fill(array.reshape(-1).view(np.uint8).data)
        stream.check()
        array.flags.writeable = False
        return array

    def header(self, name: str) -> Header:
        """Shape and type of the array of that name; its numbers are not unpacked."""
        if name not in self._headers:
            self._headers[name] = _header(self._stream(name), name, None, np.dtype(np.uint8))
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

    def _stream(self, name: str) -> "_Stream":
        found = self._members.get(f"{name}.npy") or self._members.get(name)  # KataGo leaves the ending out
        if found is None:
            raise OptionError(f"expected one array per field, but {name}.npy is missing")
        return _Stream(self._file, found)


class _Stream:
    """The unpacked bytes of a member, from its beginning to its end."""

    def __init__(self, file: FileIO, member: zipfile.ZipInfo) -> None:
        self._file, self._member = file, member
        self.left = member.file_size
        self._packed = member.compress_size  # bytes that were not read yet
        self._checksum = 0
        self._inflate = packed.fast_zlib.decompressobj(-15) if member.compress_type == zipfile.ZIP_DEFLATED else None
        self._input = b""
        file.seek(member.header_offset)
        local = file.read(_LOCAL.size) or b""
        if len(local) < _LOCAL.size:
            raise self._short()
        signature, method, _, named, more = _LOCAL.unpack(local)
        if signature != b"PK\x03\x04" or method != member.compress_type:
            raise OptionError(f"{member.filename}: is not where it should be")
        file.seek(member.header_offset + _LOCAL.size + named + more)

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
            count = self._file.readinto(piece) if self._inflate is None else self._unpack(piece)
            if not count:
                raise self._short()
            self._checksum = packed.fast_zlib.crc32(piece[:count], self._checksum)
            at += count
        self.left -= at

    def check(self) -> None:
        """OptionError if there is more than was announced, or if the content is not what was written."""
        name, size = self._member.filename, self._member.file_size
        if self._inflate is not None and self._unpack(memoryview(bytearray(1))):
            raise OptionError(f"{name}: unpacks to more than the {size} bytes it announces")
        if self._checksum != self._member.CRC:
            raise OptionError(f"{name}: its checksum is wrong")

    def _unpack(self, view: memoryview) -> int:
        """Fill some of the view; none of it at the end."""
        assert self._inflate is not None
        while not self._inflate.eof:
            if not self._input:
                wanted = _PACKED[self._packed < self._member.compress_size]
                self._input = self._file.read(min(self._packed, wanted)) or b""
                self._packed -= len(self._input)
            try:
                found = self._inflate.decompress(self._input, len(view))
            except packed.ERRORS as error:
                raise OptionError(f"{self._member.filename}: cannot be unpacked: {error}") from None
            ended = not self._input
            self._input = self._inflate.unconsumed_tail
            if found:
                view[: len(found)] = found
                return len(found)
            if ended:
                break
        return 0

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
