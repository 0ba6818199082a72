"""What a chunk says of itself, at a glance: for those who ask thousands of chunks and want no rows.

`chunk.read_meta` looks at the list of all arrays and their sizes, which is most of its time. Here the two ends of the
file are looked at: `meta` is the first array, and the list of arrays must end where the file does. Whatever is not
exactly as `chunk.pack` writes it is left to `read_meta`, which knows all that a zip may be, and says what is wrong.
"""

import json
import struct
import zlib
from pathlib import Path

from tengen import files
from tengen.data.format import chunk
from tengen.data.format.archive import DEFLATE_LIMIT
from tengen.data.format.chunk import Meta
from tengen.errors import OptionError

_LOCAL = struct.Struct("<4sHHHHHIIIHH")  # signature, ..., method, ..., crc, ..., length of the name, of what follows it
_END = struct.Struct("<4sHHHHIIH")  # signature, ..., size and place of the list of arrays, length of a comment
_ZIP64 = struct.Struct("<HHQQ")  # number 1, length, size, size as stored
_NPY = b"\x93NUMPY\x01\x00"
_FIRST = 1 << 14  # bytes, of which a meta needs one in ten
_NAME = b"meta.npy"


def read_meta(path: Path) -> Meta:
    """The same as `chunk.read_meta`, twice as fast. Raises ChunkError."""
    try:
        size, first, last = files.read_ends(path, _FIRST, _END.size)
        text = _meta(first) if _ends_well(last, size) else None
        if text is not None:
            meta = Meta.from_dict(json.loads(text.decode()))
            if meta.rows * meta.form.row_bytes <= size * DEFLATE_LIMIT:
                return meta
    except (OSError, ValueError, OptionError, struct.error):
        pass
    return chunk.read_meta(path)


def _meta(first: bytes) -> bytes | None:
    """The content of the first array, if it is called meta, lies there as it is, and has its checksum."""
    signature, *_, crc, _, _, name_length, extra_length = _LOCAL.unpack_from(first)
    start = _LOCAL.size + name_length
    if signature != b"PK\x03\x04" or first[_LOCAL.size : start] != _NAME or first[8:10] != b"\0\0":
        return None
    number, _, size, stored = _ZIP64.unpack_from(first, start)
    start += extra_length
    array = first[start : start + size]
    if number != 1 or size != stored or len(array) != size or zlib.crc32(array) != crc or array[:8] != _NPY:
        return None
    (header,) = struct.unpack_from("<H", array, 8)
    described = array[10 : 10 + header]
    return array[10 + header :] if b"'descr': '|u1'" in described else None


def _ends_well(last: bytes, size: int) -> bool:
    """Whether the list of arrays is where the end of the file says, which it is not in a file that was cut."""
    signature, *_, length, place, comment = _END.unpack(last)
    return signature == b"PK\x05\x06" and comment == 0 and place + length + _END.size == size
