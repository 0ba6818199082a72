"""KataGo's network files: round trips, and files that are damaged or of other kinds."""

import gzip
import os
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen.errors import TengenError
from tengen.interop.katago import model_file
from tests.oracles.katago_network import random_model

KINDS: list[tuple[int, dict[str, Any]]] = [
    (8, {"stem": 5}),
    (10, {}),
    (11, {"activation": "silu"}),
    (14, {"nested": True, "activation": "mish"}),
    (15, {"activation": "mish"}),
    (15, {"nested": True, "activation": "silu", "attention": "learned", "tip": "board"}),
    (16, {"activation": "silu"}),
    (17, {"activation": "silu", "attention": "fixed", "tip": "point"}),
    (17, {"attention": "none"}),
]


def same(one: Any, other: Any) -> None:
    if is_dataclass(one):
        for item in fields(one):
            same(getattr(one, item.name), getattr(other, item.name))
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            same(*pair)
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


@pytest.mark.parametrize(("version", "options"), KINDS)
def test_round_trip(tmp_path: Path, version: int, options: dict[str, Any]) -> None:
    model = random_model(version, **options)
    for name in ("net.bin.gz", "net.bin"):
        model_file.write(model, tmp_path / name)
        same(model_file.read(tmp_path / name), model)


def test_numbers_written_out(tmp_path: Path) -> None:
    """A text file by hand: the numbers of a binary one, replaced by their text."""
    model = random_model(8)
    model_file.write(model, tmp_path / "net.bin")
    data, text = (tmp_path / "net.bin").read_bytes(), b""
    while (mark := data.find(b"@BIN@")) >= 0:
        text, data = text + data[:mark], data[mark + 5 :]
        count = next(
            n for n in range(1, len(data) // 4 + 1) if data[4 * n : 4 * n + 1] == b"\n" and _next_ok(data[4 * n + 1 :])
        )
        text += " ".join(f"{x:.9g}" for x in np.frombuffer(data, "<f4", count)).encode()
        data = data[4 * count :]
    (tmp_path / "net.txt.gz").write_bytes(gzip.compress(text + data))
    same(model_file.read(tmp_path / "net.txt.gz"), model)


def _next_ok(rest: bytes) -> bool:
    """Whether a token of ours, a mark or the end comes next."""
    starts = (
        b"@BIN@",
        b"stem",
        b"block",
        b"tip",
        b"policy",
        b"value",
        b"hidden",
        b"score",
        b"ownership",
        b"ordinary",
        b"gpool",
    )
    return rest == b"" or rest.startswith(starts)


def test_every_cut_is_told(tmp_path: Path) -> None:
    model_file.write(random_model(8), tmp_path / "net.bin")
    data = (tmp_path / "net.bin").read_bytes()
    for length in range(0, len(data) - 1, max(len(data) // 60, 1)):
        (tmp_path / "cut.bin").write_bytes(data[:length])
        with pytest.raises(TengenError, match="byte"):
            model_file.read(tmp_path / "cut.bin")


def damaged(data: bytes, old: bytes, new: bytes) -> bytes:
    assert old in data
    return data.replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"random-8\n8\n", b"random-8\n18\n", "version 18: it is newer than this Tengen knows"),
        (b"random-8\n8\n", b"random-8\n5\n", "too old"),
        (b"22\n19\n", b"18\n19\n", "another version of KataGo's inputs"),
        (b"ordinary_block", b"dilated_block", "dilated_block"),
        (b"@BIN@", b"@BIN?", "expected the mark"),
        (b"block0_0\n3\n3\n8\n8\n", b"block0_0\n3\n3\n9\n8\n", "has 9 inputs, but the layer before it gives 8"),
        (b"block0_0\n3\n3\n8\n8\n", b"block0_0\n3\n3\n8\n99999999\n", "from 1 to 65536"),
        (b"block0_0\n3\n3\n8\n8\n1", b"block0_0\n3\n3\n8\n8\n2", "dilated"),
        (b"0.001\n", b"nan\n", "expected a number"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, old: bytes, new: bytes, message: str) -> None:
    model_file.write(random_model(8), tmp_path / "net.bin")
    (tmp_path / "bad.bin").write_bytes(damaged((tmp_path / "net.bin").read_bytes(), old, new))
    with pytest.raises(TengenError, match=message) as error:
        model_file.read(tmp_path / "bad.bin")
    assert str(error.value).startswith(f"{tmp_path / 'bad.bin'}: byte ")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"block2\n4\n2\n4\n3\n1\n", b"block2\n4\n3\n4\n3\n1\n", "4 heads cannot share 3 of keys and values"),
        (b"block2\n4\n2\n4\n3\n1\n", b"block2\n4\n2\n5\n3\n1\n", "keys of an even width"),
        (b"block2_base\n100.0\n", b"block2_base\n0\n", "base of the angles from 1 to 1,000,000, got 0"),
        (b"block3\n8\n10\n1\n", b"block3\n8\n10\n0\n", "without a gate are not supported"),
        (b"block3\n8\n10\n1\n", b"block3\n8\n11\n1\n", "block3_first: has 10 outputs, expected 11"),
        (b"policy\n2\n0\n", b"policy\n3\n0\n", "expected 2 or 4 policies, got 3"),
        (b"value\n0\n0\n0\n", b"value\n0\n1\n0\n", "a reserved number is not 0"),
        (b"trunk\n4\n8\n8\n8\n8\n8\n1\n", b"trunk\n4\n8\n8\n8\n8\n8\n2\n", "a whole number from 0 to 1, got"),
    ],
)
def test_what_is_wrong_with_attention_is_told(tmp_path: Path, old: bytes, new: bytes, message: str) -> None:
    model_file.write(random_model(17, attention="fixed", tip="point"), tmp_path / "net.bin")
    (tmp_path / "bad.bin").write_bytes(damaged((tmp_path / "net.bin").read_bytes(), old, new))
    with pytest.raises(TengenError, match=message) as error:
        model_file.read(tmp_path / "bad.bin")
    assert str(error.value).startswith(f"{tmp_path / 'bad.bin'}: byte ")


def test_files_of_other_kinds(tmp_path: Path) -> None:
    (tmp_path / "noise.bin.gz").write_bytes(os.urandom(2000))
    (tmp_path / "cut.bin.gz").write_bytes(gzip.compress(b"net 8 22 19" * 100)[:-20])
    (tmp_path / "more.bin").write_bytes(b"")
    os.mkfifo(tmp_path / "fifo.bin.gz")
    for name in ("noise.bin.gz", "cut.bin.gz", "more.bin", "fifo.bin.gz", "absent.bin.gz", "."):
        with pytest.raises((TengenError, OSError), match=str(tmp_path)):
            model_file.read(tmp_path / name)


def test_numbers_that_are_not_finite_and_a_longer_file(tmp_path: Path) -> None:
    model = random_model(8)
    kernel = model.stem.kernel.copy()
    kernel[0, 0, 0, 0] = np.nan
    model_file.write(replace(model, stem=replace(model.stem, kernel=kernel)), tmp_path / "nan.bin")
    with pytest.raises(TengenError, match="stem: holds numbers that are not finite"):
        model_file.read(tmp_path / "nan.bin")
    model_file.write(model, tmp_path / "net.bin")
    (tmp_path / "long.bin").write_bytes((tmp_path / "net.bin").read_bytes() + b"more\n")
    with pytest.raises(TengenError, match="the file goes on"):
        model_file.read(tmp_path / "long.bin")


def test_names_that_katago_refuses(tmp_path: Path) -> None:
    with pytest.raises(TengenError, match="1 to 96 letters"):
        model_file.write(replace(random_model(8), name="my net"), tmp_path / "net.bin")
    assert not list(tmp_path.iterdir())


def test_blocks_in_blocks_without_end(tmp_path: Path) -> None:
    zeros = " 0".join([""] * 23)
    head = f"net 8 22 19 trunk 1 1 1 1 1 1 stem 1 1 22 1 1 1{zeros} globals 19 1{zeros[:-6]}"
    level = "nested_bottleneck_block block 1 norm 1 0.1 1 1 0 1 1 0 activation conv 1 1 1 1 1 1 0"
    (tmp_path / "net.txt").write_text(" ".join([head, *[level] * 3000]))
    with pytest.raises(TengenError, match="blocks in blocks, more than 8 deep"):
        model_file.read(tmp_path / "net.txt")
