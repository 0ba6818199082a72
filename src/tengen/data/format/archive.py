"""The arrays in an `.npz`, read from files that may be damaged or malicious.

An `.npz` is a zip of `.npy` files. The headers of a zip can be wrong on purpose: a few kilobytes may claim, or unpack
to, gigabytes. So everything is first compared with something that cannot lie, the size of the file:

- members are stored or deflated, and deflating shrinks no more than 1032 times; other methods shrink without limit
- members do not overlap, so that all of them together are no longer than the file
- an array's shape and type are compared with what they must be before there is memory for it
- no more is unpacked than was announced

It is also faster than Python's `zipfile`, which matters when thousands of chunks are read.
"""

import math
import os
import re
import struct
import zlib
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tengen import files
from tengen.errors import OptionError
from tengen.files import packed

_END = struct.Struct("<4s8xIIH")  # signature, size and place of the list of members, length of a comment
_END64 = struct.Struct("<4s36xQQ")  # for large files: signature, size and place of the list
_WHERE64 = struct.Struct("<4s4xQ4x")  # signature, place of the latter
_LISTED = struct.Struct("<4s4xHH4xIIIHHH8xI")  # signature, flags, method, checksum, sizes, lengths, place of a member
_LOCAL = struct.Struct("<4s4xH4xI8xHH")  # where it lies: signature, method, checksum, lengths of the name and of extras
_SIZES64 = struct.Struct("<HHQQ")  # such an extra: number 1, length, size, size as stored
_STORED, _DEFLATED = 0, 8
_METHODS = {12: "bzip2", 14: "LZMA", 93: "Zstandard", 95: "xz"}
_UNKNOWN = 2**32 - 1  # what stands for a number that does not fit
_TAIL = 4096  # bytes at the end of a file, in which the list of a chunk's members is
_COMMENT_LIMIT = 2**16
_LIST_LIMIT = 2**18  # bytes: a chunk has some fifteen members, which take one thousand
DEFLATE_LIMIT = 1032  # by how much deflating can shrink
_BLOCK = 2**20  # bytes that are read or unpacked at a time
_PACKED = (2**10, 2**16)  # packed bytes that are read at first, which is enough for a header, and later
_FIRST = 2**14  # bytes of a peek
NPY = b"\x93NUMPY\x01\x00"
HEADER_LIMIT = 4096  # bytes of an `.npy` file before its numbers
# A key of a header and its value, with the comma behind it. NumPy itself reads headers with `ast`, which in Python 3.11
# fails when several threads use it at once.
_ENTRY = re.compile(rb"""['"](\w+)['"] *: *(['"][<>|=]?[biuf]\d+['"]|False|True|\([\d, ]*\)) *,? *""")


class Member(NamedTuple):
    """A file in a zip, as the list at the end describes it."""

    name: str
    method: int
    checksum: int
    stored: int  # bytes as they lie there
    size: int  # bytes once unpacked
    place: int  # where it begins
    end: int  # where something else does


class Archive:
    """The members of an open `.npz`. Raises OptionError for bad content, OSError for errors of the disk."""

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self.members: Mapping[str, Member] = _members(file)
        self._headers: dict[str, tuple[tuple[int, ...], np.dtype]] = {}

    def read(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """The array of that name, if it has that shape and type; only then is memory spent on it."""
        stream = _Stream(self._file, self._member(name))
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

    def header(self, name: str) -> tuple[tuple[int, ...], np.dtype]:
        """Shape and type of the array of that name; its numbers are not unpacked."""
        if name not in self._headers:
            stream = _Stream(self._file, self._member(name))
            self._headers[name] = _header(stream, name, (), np.dtype(np.uint8))
        return self._headers[name]

    def read_text(self, name: str, limit: int) -> bytes:
        """The array of that name, if it is UInt8[N] with no more bytes than the limit."""
        member = self._member(name)
        if member.size > limit:
            raise OptionError(f"{name}: expected at most {limit} bytes, got {member.size}")
        stream = _Stream(self._file, member)
        data = bytearray(member.size)
        stream.fill(memoryview(data))
        stream.check()
        if data[:8] != NPY or len(data) < 10:
            raise OptionError(f"{name}: expected a .npy file of version 1.0")
        begin = 10 + int.from_bytes(data[8:10], "little")
        text = data[begin:]
        byte = np.dtype(np.uint8)
        if _parsed(bytes(data[10:begin]), name, (len(text),), byte) != ((len(text),), byte):
            raise OptionError(f"{name}: expected text as bytes")
        return bytes(text)

    def _member(self, name: str) -> Member:
        found = self.members.get(f"{name}.npy") or self.members.get(name)  # KataGo leaves the ending out
        if found is None:
            raise OptionError(f"expected one array per field, but {name}.npy is missing")
        return found


class _Stream:
    """The unpacked bytes of a member, from its beginning to its end."""

    def __init__(self, file: FileIO, member: Member) -> None:
        self._file, self._member = file, member
        self.left = member.size
        self._packed = member.stored  # bytes that were not read yet
        self._checksum = 0
        self._inflate = packed.fast_zlib.decompressobj(-15) if member.method == _DEFLATED else None
        self._input = b""
        file.seek(_begin(file, member))

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
        if self._inflate is not None and self._unpack(memoryview(bytearray(1))):
            raise OptionError(f"{self._member.name}: unpacks to more than the {self._member.size} bytes it announces")
        if self._checksum != self._member.checksum:
            raise OptionError(f"{self._member.name}: its checksum is wrong")

    def _unpack(self, view: memoryview) -> int:
        """Fill some of the view; none of it at the end."""
        assert self._inflate is not None
        while not self._inflate.eof:
            if not self._input:
                wanted = _PACKED[self._packed < self._member.stored]
                self._input = self._file.read(min(self._packed, wanted)) or b""
                self._packed -= len(self._input)
            try:
                found = self._inflate.decompress(self._input, len(view))
            except packed.ERRORS as error:
                raise OptionError(f"{self._member.name}: cannot be unpacked: {error}") from None
            ended = not self._input
            self._input = self._inflate.unconsumed_tail
            if found:
                view[: len(found)] = found
                return len(found)
            if ended:
                break
        return 0

    def _short(self) -> OptionError:
        return OptionError(f"{self._member.name}: is cut short")


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
    plain = signature == b"PK\x03\x04" and method == _STORED and number == 1 and unpacked == stored == len(array)
    if not (whole and plain and first[_LOCAL.size : start] == f"{name}.npy".encode()):
        raise OptionError(f"expected {name} first, as it is, and a list of members at the end")
    if zlib.crc32(array) != checksum or array[:8] != NPY or b"'descr': '|u1'" not in array[10 : 10 + header]:
        raise OptionError(f"{name}: expected bytes with their checksum")
    return size, array[10 + header :]


def _members(file: FileIO) -> dict[str, Member]:
    """All members by name."""
    size = file.seek(0, os.SEEK_END)
    end, length = _list(file, size)
    listed = _read(file, end, length)
    found = []
    at = 0
    while at + _LISTED.size <= length:
        signature, flags, method, checksum, *sizes, named, more, noted, place = _LISTED.unpack_from(listed, at)
        stored, unpacked = sizes
        if signature != b"PK\x01\x02":
            break
        begin = at + _LISTED.size
        name, extra = listed[begin : begin + named].decode("utf-8", "replace"), listed[begin + named :][:more]
        if _UNKNOWN in (stored, unpacked, place):
            unpacked, stored, place = _large(extra, unpacked, stored, place)
        if flags & 1:
            raise OptionError(f"{name}: is encrypted")
        found.append((place, name, method, checksum, stored, unpacked))
        at = begin + named + more + noted
    if at != length:
        raise OptionError("not a zip file: its list of members is damaged")
    members: dict[str, Member] = {}
    for place, name, method, checksum, stored, unpacked in sorted(found, reverse=True):
        if name in members:
            raise OptionError(f"{name}: is there twice")
        members[name] = member = Member(name, method, checksum, stored, unpacked, place, end)
        _check(member)
        end = place
    return members


def _check(member: Member) -> None:
    """OptionError if the sizes of a member cannot be true."""
    if member.place + _LOCAL.size + member.stored > member.end:
        raise OptionError(f"{member.name}: overlaps with what follows it")
    if member.method == _STORED:
        possible = member.size == member.stored
    elif member.method == _DEFLATED:
        possible = member.size <= member.stored * DEFLATE_LIMIT
    else:
        method = _METHODS.get(member.method, f"method {member.method}")
        raise OptionError(f"{member.name}: expected it stored or deflated, got {method}")
    if not possible:
        raise OptionError(f"{member.name}: {member.stored} bytes cannot unpack to {member.size}")


def _list(file: FileIO, size: int) -> tuple[int, int]:
    """Where the list of members is, and how long."""
    tail = _read(file, max(size - _TAIL, 0), min(size, _TAIL))
    at = len(tail) - _END.size
    if at < 0 or tail[at : at + 4] != b"PK\x05\x06" or tail[-2:] != b"\0\0":  # there is a comment, or it is no zip
        tail = _read(file, max(size - _COMMENT_LIMIT - _TAIL, 0), min(size, _COMMENT_LIMIT + _TAIL))
        at = tail.rfind(b"PK\x05\x06", 0, len(tail) - _END.size + 4)
        if at < 0:
            raise OptionError("not a zip file, or cut short: it has no end")
    _, length, place, comment = _END.unpack_from(tail, at)
    if at + _END.size + comment != len(tail):
        raise OptionError("not a zip file: there is something behind its end")
    end = size - len(tail) + at
    if at >= _WHERE64.size and tail[at - _WHERE64.size : at][:4] == b"PK\x06\x07":
        _, begin = _WHERE64.unpack_from(tail, at - _WHERE64.size)
        end -= _WHERE64.size + _END64.size
        signature, length, place = _END64.unpack(_read(file, end, _END64.size))
        if signature != b"PK\x06\x06" or begin != end:
            raise OptionError("not a zip file: its end is damaged")
    if place + length != end or length > _LIST_LIMIT:
        raise OptionError("not a chunk: its list of members is too long, or not where it should be")
    return place, length


def _large(extra: bytes, *numbers: int) -> list[int]:
    """Numbers of a member that do not fit their places, from where they stand instead."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            rest = extra[at + 4 : at + 4 + length]
            found = []
            for number in numbers:
                if number == _UNKNOWN:
                    if len(rest) < 8:
                        break
                    number, rest = int.from_bytes(rest[:8], "little"), rest[8:]
                found.append(number)
            else:
                return found
        at += 4 + length
    raise OptionError("not a zip file: the size of a member is missing")


def _begin(file: FileIO, member: Member) -> int:
    """Where the bytes of a member begin."""
    local = _read(file, member.place, _LOCAL.size)
    signature, method, _, named, more = _LOCAL.unpack(local)
    begin = member.place + _LOCAL.size + named + more
    if signature != b"PK\x03\x04" or method != member.method:
        raise OptionError(f"{member.name}: is not where it should be")
    if begin + member.stored > member.end:
        raise OptionError(f"{member.name}: overlaps with what follows it")
    return begin


def _read(file: FileIO, place: int, count: int) -> bytes:
    """These bytes. OptionError if the file has fewer."""
    if place < 0 or count < 0:
        raise OptionError("not a zip file: it points to places before its beginning")
    file.seek(place)
    data = file.read(count) or b""
    if len(data) != count:
        raise OptionError("not a zip file, or cut short")
    return data


def _header(stream: _Stream, name: str, shape: tuple[int, ...], dtype: np.dtype) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type as the `.npy` file says."""
    start = bytearray(10)
    stream.fill(memoryview(start))
    length = int.from_bytes(start[8:], "little")
    if start[:8] != NPY:
        raise OptionError(f"{name}: expected a .npy file of version 1.0")
    if length > HEADER_LIMIT:
        raise OptionError(f"{name}: expected at most {HEADER_LIMIT} bytes before the numbers, got {length}")
    text = bytearray(length)
    stream.fill(memoryview(text))
    return _parsed(bytes(text), name, shape, dtype)


def _parsed(text: bytes, name: str, shape: tuple[int, ...], dtype: np.dtype) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type in the header of an `.npy`, which most probably are these."""
    sizes = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    probable = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({sizes}), }}"
    if text.rstrip() == probable.encode():
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
