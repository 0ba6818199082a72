"""The wire format of protocol buffers, as far as network files need it: enough to read Lc0's files and to write ONNX.

A message is a list of numbered fields. Nothing is generated and nothing is installed: callers know the numbers.
"""

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from tengen.errors import TengenError

Value: TypeAlias = int | float | str | bytes | np.uint32
Fields: TypeAlias = dict[int, list[int | memoryview]]
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_FIXED = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}
_MOST_BITS = 64
_MOST_FIELDS = 100_000  # of one message: garbage can look like millions of empty fields


def message(fields: Iterable[tuple[int, Value]]) -> bytes:
    """The message with these (number, value) pairs in their order. Messages inside it are bytes.

    A whole number is written as a varint, a float as float32, and `np.uint32` as fixed32.
    """
    parts: list[bytes] = []
    for number, value in fields:
        if isinstance(value, str | bytes):
            data = value.encode() if isinstance(value, str) else value
            parts += (_varint(number << 3 | _BYTES), _varint(len(data)), data)
        elif isinstance(value, int):
            parts += (_varint(number << 3 | _VARINT), _varint(value & (1 << _MOST_BITS) - 1))
        else:
            kind = "<f4" if isinstance(value, float) else "<u4"
            parts += (_varint(number << 3 | _FOUR_BYTES), np.asarray(value, kind).tobytes())
    return b"".join(parts)


def parse(data: bytes | memoryview) -> Fields:
    """The fields of a message by number, each with all of its values in order.

    A value is a whole number, or the bytes of anything else. Raises TengenError with the offset of what is damaged.
    """
    view, at, count, found = memoryview(data), 0, 0, {}
    while at < len(view):
        start, count = at, count + 1
        key, at = _read_varint(view, at)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise TengenError(f"there is no field at byte {start}")
        if count > _MOST_FIELDS:
            raise TengenError(f"more than {_MOST_FIELDS:,} fields before byte {start}")
        if kind == _VARINT:
            value, at = _read_varint(view, at)
        elif kind == _BYTES or kind in _FIXED:
            size, at = _read_varint(view, at) if kind == _BYTES else (_FIXED[kind], at)
            if size > len(view) - at:
                raise TengenError(f"field {number} at byte {start} ends beyond the end of the data")
            value, at = view[at : at + size], at + size
        else:
            raise TengenError(f"there is no field at byte {start}")
        found.setdefault(number, []).append(value)
    return found


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _read_varint(view: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, _MOST_BITS + 6, 7):
        if at >= len(view):
            raise TengenError(f"the data ends inside a number, at byte {at}")
        byte, at = view[at], at + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise TengenError(f"no number has as many bytes as the one at byte {at}")
