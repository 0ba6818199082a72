"""Lc0's training records: all versions, what is refused, and writing."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from tengen.data.format import lc0
from tengen.data.format.chunk import CorruptChunk, ForeignChunk
from tengen.errors import TengenError
from tests.helpers.lc0_records import REAL, made


def test_offsets_are_those_of_lc0() -> None:
    assert {version: kind.itemsize for version, kind in lc0.VERSIONS.items()} == {3: 8276, 4: 8292, 5: 8308, 6: 8356}
    fields = lc0.RECORD.fields
    assert fields is not None
    wanted = {"probabilities": 8, "planes": 7440, "castling": 8272, "black": 8276, "rule_50": 8277, "flags": 8278,
              "root_q": 8280, "plies_left": 8304, "result_q": 8308, "orig_q": 8328, "visits": 8340, "best_idx": 8346,
              "policy_kld": 8348, "q_st": 8352}  # fmt: skip
    assert {name: fields[name][1] for name in wanted} == wanted


@pytest.mark.parametrize("version", [3, 4, 5])
def test_older_versions_are_widened(version: int) -> None:
    new = made(4)
    old = np.zeros(4, lc0.VERSIONS[version])
    for name in old.dtype.names or ():
        old[name] = new[name]
    old["version"], old["result"] = version, (1, 0, -1, 0)
    found = lc0.unpack(old.tobytes(), "game")
    assert found.dtype == lc0.RECORD
    assert (found["input_format"] == 1).all()
    assert (found["planes"] == new["planes"]).all()
    assert (found["probabilities"] == new["probabilities"]).all()
    assert found["result_q"].tolist() == [1, 0, -1, 0]
    assert found["result_d"].tolist() == [0, 1, 0, 1]
    assert found["plies_left"].tolist() == [3, 2, 1, 0]
    assert np.isnan(found["orig_q"]).all()
    assert not found["visits"].any()
    assert not lc0.is_whole(found)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    records = made(5)
    lc0.write(tmp_path / "game_000000.gz", records)
    data = (tmp_path / "game_000000.gz").read_bytes()
    assert gzip.decompress(data) == records.tobytes()
    assert lc0.unpack(data, "game").tobytes() == records.tobytes()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("root_q", 1.5, "root_q: expected from -1 to 1, unlike in 1 of 3 records"),
        ("best_d", np.nan, "best_d: expected from 0 to 1"),
        ("plies_left", -1, "plies_left: expected a finite number from 0 on"),
        ("plies_left", np.inf, "plies_left: expected a finite number from 0 on"),
        ("planes", 0, "planes: expected a king of each side"),
        ("planes", 3, "planes: expected a king of each side"),
        ("castling", (2, 0, 0, 0), "castling: expected 0 or 1"),
        ("black", 2, "black: expected 0 or 1"),
        ("rule_50", 101, "rule_50: expected at most 100"),
        ("orig_q", -np.inf, "orig_q: expected from -1 to 1, or NaN"),
        ("policy_kld", -1, "policy_kld: expected at least 0"),
        ("input_format", 9, "input_format: expected one that Lc0 knows"),
        ("best_idx", 1, "best_idx: expected a legal move"),
        ("played_idx", 1900, "played_idx: expected a legal move"),
        ("probabilities", 0.5, "probabilities: expected -1 or numbers from 0 to 1 with the sum 1"),
    ],
)
def test_impossible_values_are_not_written(tmp_path: Path, field: str, value: object, message: str) -> None:
    records = made(3)
    records[field][0] = value
    with pytest.raises(TengenError, match=f"not written: {message}"):
        lc0.write(tmp_path / "game.gz", records)
    assert not list(tmp_path.iterdir())


def test_numbers_that_were_not_computed() -> None:
    records = made(3)
    records["orig_q"], records["policy_kld"] = np.nan, (np.nan, 0, np.inf)
    assert not lc0.is_whole(records)


def test_two_games_in_one_file() -> None:
    both = np.concatenate([made(3), made(4, seed=1)])
    assert lc0.is_whole(both) == "planes: expected the moves of one game, unlike in 1 of 7 records"
    assert not lc0.is_whole(both[:3])


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda data: gzip.compress(data)[:-20], CorruptChunk, "game: the gzip file is cut off"),
        (lambda data: gzip.compress(data)[:9] + b"x" * 99, CorruptChunk, "game: not a good gzip file"),
        (lambda data: data[:-1], CorruptChunk, "game: 16,711 bytes, which is no multiple of the 8,356 of a record"),
        (lambda data: b"\x07" + data[1:], ForeignChunk, "game: records of version 7, expected Lc0's"),
        (lambda data: data[:8356] + b"\x05" + data[8357:], CorruptChunk, "game: records of several versions"),
        (lambda data: b"", CorruptChunk, "game: holds nothing"),
        (lambda data: gzip.compress(b""), CorruptChunk, "game: holds nothing"),
    ],
)
def test_damaged_files_are_refused(spoil: object, error: type[Exception], message: str) -> None:
    assert callable(spoil)
    with pytest.raises(error, match=message):
        lc0.unpack(spoil(made(2).tobytes()), "game")


@pytest.mark.skipif(not REAL.is_dir(), reason="no chunks of real games beside the clone")
def test_real_games() -> None:
    for path in sorted(REAL.glob("*.gz")):
        assert not lc0.is_whole(lc0.unpack(path.read_bytes(), path))
