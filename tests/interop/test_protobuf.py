"""The wire format of protocol buffers."""

import numpy as np
import pytest

from tengen.errors import TengenError
from tengen.interop import protobuf


def test_a_message_as_the_specification_shows_it() -> None:
    assert protobuf.message([(1, 150)]) == bytes.fromhex("089601")
    assert protobuf.message([(2, "testing")]) == bytes.fromhex("120774657374696e67")
    assert protobuf.message([(3, protobuf.message([(1, 150)]))]) == bytes.fromhex("1a03089601")
    assert protobuf.message([(1, -1)]) == bytes.fromhex("08ffffffffffffffffff01")
    assert protobuf.message([(1, np.uint32(0x1C0)), (2, 1.5)]) == bytes.fromhex("0dc001000015 0000c03f")


def test_what_was_written_is_read() -> None:
    data = protobuf.message([(1, 7), (45, b"abc"), (1, 300), (2, 0.5)])
    found = protobuf.parse(data)
    assert found[1] == [7, 300]
    assert [bytes(value) for value in found[45]] == [b"abc"]
    assert bytes(found[2][0]) == bytes.fromhex("0000003f")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x0a\x05abc", "field 1 at byte 0 ends beyond the end"),
        (b"\x08\x01\x08", "the data ends inside a number, at byte 3"),
        (b"\x0d\x00\x00", "field 1 at byte 0 ends beyond"),
        (b"\x08" + b"\xff" * 11, "no number has as many bytes"),
        (b"\x0b", "there is no field at byte 0"),
        (bytes(50_000_000), "there is no field at byte 0"),
        (b"\x08\x00" * 200_000, "more than 100,000 fields before byte 200000"),
    ],
)
def test_damaged(data: bytes, message: str) -> None:
    with pytest.raises(TengenError, match=message):
        protobuf.parse(data)
