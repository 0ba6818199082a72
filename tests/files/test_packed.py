"""Unpacking gzip, with and without memory that is used again."""

import gzip
import io
import tracemalloc

import pytest

from tengen.files import packed
from tengen.files.packed import UnpackBuffer, unpack

DATA = bytes(range(256)) * 1000
MOST = 1 << 24


@pytest.mark.parametrize("size", [0, 1, 4096, len(DATA)])
def test_data_comes_back(size: int) -> None:
    room = UnpackBuffer()
    stream = gzip.compress(DATA[:size])
    for _ in range(2):
        assert bytes(unpack(stream, MOST)) == bytes(unpack(stream, MOST, room)) == DATA[:size]
    assert unpack(b"not packed", MOST, room) == b"not packed"


def test_a_room_grows_while_a_result_is_in_use() -> None:
    room = UnpackBuffer()
    small = unpack(gzip.compress(b"abc"), MOST, room)
    many = DATA * 10
    assert bytes(unpack(gzip.compress(many), MOST, room)) == many
    assert len(small) == 3  # a view of the memory before
    assert bytes(unpack(gzip.compress(b"xyz"), MOST, room)) == b"xyz"


@pytest.mark.parametrize("room", [None, UnpackBuffer()])
def test_what_is_damaged_or_too_large_is_refused(room: UnpackBuffer | None) -> None:
    stream = gzip.compress(DATA)
    with pytest.raises(ValueError, match="unpacks to more than 1,000 bytes"):
        unpack(stream, 1000, room)
    with pytest.raises(ValueError, match="unpacks to more than 255,999 bytes"):
        unpack(stream, len(DATA) - 1, room)
    assert bytes(unpack(stream, len(DATA), room)) == DATA
    with pytest.raises(ValueError, match="cut off"):
        unpack(stream[:-9], MOST, room)
    with pytest.raises(ValueError, match="not a good gzip file"):
        unpack(stream[:50] + b"\0\0\0\0" + stream[54:], MOST, room)
    with pytest.raises(ValueError, match="not a good gzip file"):
        unpack(stream[:-6] + b"\1\2" + stream[-4:], MOST, room)


def test_streams_that_were_put_together_are_all_unpacked() -> None:
    """By `cat`, say. What is no stream after one is damage, not something to leave out."""
    first, second = gzip.compress(b"abc"), gzip.compress(b"def")
    assert bytes(unpack(first + second, MOST)) == b"abcdef"
    with pytest.raises(ValueError, match="not a good gzip file"):
        unpack(first + b"something else altogether", MOST)


def test_the_module_that_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where zlib-ng is missing, Python's own reader gives the same."""
    monkeypatch.setattr(packed, "_Reader", lambda data: gzip.GzipFile(fileobj=io.BytesIO(data)))
    test_data_comes_back(len(DATA))
    test_what_is_damaged_or_too_large_is_refused(None)


def test_no_more_memory_than_the_limit_allows() -> None:
    stream, most = gzip.compress(bytes(1 << 24)), 3 << 20
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="unpacks to more than"):
            unpack(stream, most)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * most
