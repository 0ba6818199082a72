"""Games as Lc0's records, against an independent reader."""

from pathlib import Path

import numpy as np
import pytest

from tengen.data.format import chunk, lc0, lc0_writing
from tengen.games import chess_lc0
from tests.helpers import lc0_checker
from tests.helpers.lc0_records import FOOLS_MATE, REAL, made, searched


def test_a_game_played_here_becomes_records(tmp_path: Path) -> None:
    records = made(4)
    seen = chess_lc0.observation(
        chess_lc0.unpack(records["planes"]),
        records["castling"] != 0,
        records["black"] != 0,
        records["rule_50"].astype(int),
    )
    drifting = np.array([[1.001, 0.1, 20.0], [0.5, 0.7, 3.0], [-0.2, 0.1, 2.0], [0, 1.2, -0.1]], np.float32)
    game = lc0_writing.Lc0Game(
        planes=np.asarray(seen.planes),
        scalars=np.asarray(seen.scalars),
        probabilities=records["probabilities"],
        played_idx=records["played_idx"],
        best_idx=records["best_idx"],
        visits=records["visits"],
        root=drifting,
        best=drifting / 2,
        played=drifting / 4,
        orig=np.full((4, 3), np.nan, np.float32),
        result=-1,
        policy_kld=np.array([0, 1, np.nan, -1e-9], np.float32),
        flags=np.array([0, 8, 64, 0]),
    )
    found = lc0_writing.to_records(game)
    lc0.write(tmp_path / "game.gz", found)
    for name in ("probabilities", "planes", "castling", "black", "rule_50", "played_idx", "best_idx", "visits"):
        np.testing.assert_array_equal(found[name], records[name], name)
    np.testing.assert_allclose(found["root_d"], [0, 0.5, 0.1, 1], atol=1e-6)
    np.testing.assert_allclose(found["best_q"], [0.5005, 0.25, -0.1, 0], atol=1e-6)
    np.testing.assert_allclose(found["played_m"], [5, 0.75, 0.5, 0], atol=1e-6)
    assert found["result_q"].tolist() == [-1, 1, -1, 1]
    assert found["plies_left"].tolist() == [4, 3, 2, 1]
    assert np.isnan(found["orig_q"]).all()
    assert [value > 0 for value in found["policy_kld"]] == [True, True, False, True]
    assert chunk.read_meta(tmp_path / "game.gz").rows == 3  # one is history only


def test_an_independent_reader_accepts_a_game(tmp_path: Path) -> None:
    rows, actions = searched(FOOLS_MATE, opening=1, full=[False, True, False, True])
    backwards = {name: values[::-1] for name, values in rows.items()}  # rows may come in any order
    numbers = np.array([[3, 6], [3, 7]], np.uint32)  # the first game has no rows
    tables = (numbers, np.stack([actions] * 2), np.array([1.0, -1.0]), np.array([False, False]))
    (game,) = lc0_writing.records_of(backwards, *tables)
    lc0_writing.write(tmp_path / "new", "0000000000-a", [game])
    (path,) = (tmp_path / "new").iterdir()
    assert path.name == "0000000000-a-00000.gz"
    records = lc0_checker.check(path)
    assert [record.flags for record in records] == [0, 64, 8]
    first, _, last = records
    assert [lc0_checker.NAMES[record.played] for record in records] == ["e2e4", "g2g4", "d1h5"]
    assert (first.visits, first.floats["orig_q"], first.floats["orig_m"]) == (9, pytest.approx(0.1), 12)
    assert [first.floats[f"{name}_q"] for name in ("root", "best", "played")] == pytest.approx([0.25, 0.2, 0.2])
    assert [first.floats[f"{name}_d"] for name in ("root", "best", "played")] == pytest.approx([0.3, 0.3, 0.3])
    assert [last.floats[f"played_{part}"] for part in "qdm"] == [1, 0, 1]
    assert first.policy_kld == pytest.approx(0.5)
    assert chunk.read_meta(path).rows == 2
    assert chunk.read_chunk(path)[0]["ply"].tolist() == [0, 2]  # counted from the first record


def test_a_game_that_was_cut_off_is_marked() -> None:
    rows, actions = searched(FOOLS_MATE[:2], opening=0, full=[True, True])
    tables = (np.array([[3, 7]], np.uint32), actions[None], np.zeros(1), np.array([True]))
    (game,) = lc0_writing.records_of(rows, *tables)
    assert game["flags"].tolist() == [48, 48]
    assert game["result_d"].tolist() == [1, 1]


def test_the_reader_accepts_real_games() -> None:
    """So it checks what Lc0's own games fulfil."""
    paths = sorted(REAL.glob("*.gz"))[2:3]
    if not paths:
        pytest.skip("there are no real games beside the clone")
    assert len(lc0_checker.check(paths[0])) == 111
