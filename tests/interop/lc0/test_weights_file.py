"""Lc0's network files."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen.errors import TengenError
from tengen.files import packed
from tengen.interop import protobuf
from tengen.interop.lc0 import weights_file
from tests.oracles import lc0_network as oracle


def leaves(net: Any) -> list[np.ndarray]:
    if isinstance(net, np.ndarray):
        return [net]
    if isinstance(net, dict):
        net = [net[key] for key in sorted(net)]
    inner = net if isinstance(net, list) else ()
    return [leaf for value in inner for leaf in leaves(value)]


@pytest.mark.parametrize(("name", "encoding"), [("net.pb.gz", "linear16"), ("net.pb", "float32")])
def test_what_is_written_is_read(tmp_path: Path, name: str, encoding: Any) -> None:
    net = oracle.network(0)
    weights_file.write(net, tmp_path / name, encoding)
    found = weights_file.read(tmp_path / name)
    assert found["format"] == net["format"]
    for one, other in zip(leaves(net), leaves(found), strict=True):
        step = 0 if encoding == "float32" else (one.max() - one.min()) / 65535
        np.testing.assert_allclose(other, one, atol=step * 0.51 + 1e-7)
    assert (tmp_path / name).read_bytes()[:2] == (b"\x1f\x8b" if name.endswith("gz") else b"\x0d\xc0")


def test_every_encoding_of_a_layer() -> None:
    numbers = np.array([1.5, -2.0, 0.25], np.float32)
    bfloat = (numbers.view(np.uint32) >> 16).astype("<u2")
    for encoding, params in ((2, numbers.astype("<f2")), (3, bfloat), (4, numbers)):
        data = protobuf.message([(3, params.tobytes()), (4, encoding)])
        np.testing.assert_array_equal(weights_file._layer(memoryview(data), "layer"), numbers)
    constant = protobuf.message([(1, 3.0), (2, 3.0), (3, np.array([7, 0], "<u2").tobytes())])
    np.testing.assert_allclose(weights_file._layer(memoryview(constant), "layer"), [3, 3])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: gzip.compress(data)[:-30], "cut off"),
        (lambda data: b"PK" + data, "net.pb.gz: not a whole network of Lc0|whose file begins with"),
        (lambda data: data[:-5], "net.pb.gz: not a whole network of Lc0: field 10 at byte"),
        (lambda data: b"", "whose file begins with the number 0x1c0"),
        (lambda data: b"\x0d\x01\x00\x00\x00" + data[5:], "whose file begins with the number 0x1c0"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, spoil: Any, message: str) -> None:
    weights_file.write(oracle.network(0), tmp_path / "good.pb")
    path = tmp_path / "net.pb.gz"
    path.write_bytes(spoil((tmp_path / "good.pb").read_bytes()))
    with pytest.raises(TengenError, match=message):
        weights_file.read(path)


@pytest.mark.parametrize("low", [1 << 40, b"12345678", b"123"])
def test_limits_of_a_layer_that_are_no_numbers_of_32_bits(low: Any) -> None:
    data = protobuf.message([(1, low), (3, b"ab")])
    with pytest.raises(TengenError, match="expected one number of 32 bits as the lowest"):
        weights_file._layer(memoryview(data), "layer")


def test_limits_of_a_layer_that_are_not_finite() -> None:
    data = protobuf.message([(1, float("-inf")), (2, 1.0), (3, b"\0\0\xff\xff")])
    with pytest.raises(TengenError, match="layer: holds numbers that are not finite"):
        weights_file._layer(memoryview(data), "layer")


def test_a_small_file_that_unpacks_to_gigabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_SMALL", 10_000)
    path = tmp_path / "net.pb.gz"
    path.write_bytes(gzip.compress(bytes(1_000_000)))
    with pytest.raises(
        TengenError, match=r"net.pb.gz: not a whole network of Lc0: unpacks to more than \d\d,\d{3} bytes"
    ):
        weights_file.read(path)
    monkeypatch.setattr(packed, "_MOST_BYTES", 1000)
    path.write_bytes(bytes(1001))
    with pytest.raises(TengenError, match="net.pb.gz: not a whole network of Lc0: more than 1,000 bytes"):
        weights_file.read(path)
