"""Rows of games that others played, against positions that are replayed one by one."""

from typing import Any

import jax
import numpy as np
import pytest

from tengen import games
from tengen.data.format import rows as row
from tengen.data.format import sanity
from tengen.data.format.rows import RowFormat, Rows
from tengen.data.records import moves
from tengen.data.records import sgf as sgf_files
from tengen.data.records.records import Record
from tengen.data.records.row_maker import RowMaker

HEADS = ("opponent_policy", "ownership", "score")
GO = games.make("go", size=3, komi=0.5)
FORM = RowFormat.of(GO, HEADS)
# Black has the centre; everything is Black's.
PLAYED = ";B[bb];W[];B[]"


def sgf(body: str, head: str = "SZ[3]KM[0.5]RE[B+8.5]") -> Record:
    (found,) = sgf_files.read(f"(;GM[1]{head}{body})")
    return found


def made(*records: Record, game: Any = GO, form: RowFormat = FORM) -> tuple[RowMaker, Rows]:
    maker = RowMaker(game, form)
    parts = [rows for record in records for rows in maker.add(record, "a file")] + list(maker.finish())
    assert len(parts) <= 1
    return maker, parts[0] if parts else {}


@pytest.fixture(scope="module")
def several() -> tuple[RowMaker, Rows]:
    """A counted game, a resigned one with another komi, one with a handicap, one counted by other rules."""
    return made(
        sgf(PLAYED),
        sgf(";B[aa];W[bb]", "SZ[3]KM[-2]RE[W+R]"),
        sgf(";W[cc]", "SZ[3]KM[0.5]HA[2]AB[aa][bb]RE[B+T]"),
        sgf(PLAYED, "SZ[3]KM[0.5]RE[B+3.5]RU[Japanese]"),
        sgf(";B[aa];W[bb];B[];W[]", "SZ[3]KM[0.5]RE[W+4.5]C[startTurnIdx=2,gtype=normal]"),
    )


def test_every_row(several: tuple[RowMaker, Rows]) -> None:
    maker, rows = several
    assert (maker.games, maker.rows, maker.without_targets, dict(maker.skipped)) == (5, 11, 4, {})
    assert not list(sanity.problems(FORM, rows))
    np.testing.assert_array_equal(rows["ply"], [0, 1, 2, 0, 1, 0, 0, 1, 2, 2, 3])
    np.testing.assert_array_equal(rows["moves_left"], [3, 2, 1, 2, 1, 1, 3, 2, 1, 2, 1])
    np.testing.assert_array_equal(rows["to_play"], [0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1])
    np.testing.assert_array_equal(rows["policy"].argmax(1), [4, 9, 9, 0, 4, 8, 4, 9, 9, 9, 9])
    assert (rows["policy"].sum(1) == 1).all()
    wins = [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]
    np.testing.assert_array_equal(rows["outcome"][:, 0], wins)
    np.testing.assert_array_equal(rows["search_value"], 2 * np.array(wins) - 1)
    assert len(np.unique(rows["game"], axis=0)) == 5
    np.testing.assert_array_equal(rows["opponent_weight"], [1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0])
    np.testing.assert_array_equal(rows["opponent_policy"][:2].argmax(1), [9, 9])


def test_observations(several: tuple[RowMaker, Rows]) -> None:
    """As the game itself sees the positions; komi is that of the record, the rules are those of the game."""
    _, rows = several
    planes = row.unpack_planes(rows["planes"], FORM.planes_shape)
    record = Record("go", {"size": 3, "komi": -2.0, "ko": "positional", "suicide": False}, (0, 4))
    observe = jax.jit(moves.game_of(record).observe)
    for place, state in zip((3, 4), moves.replay(record), strict=False):
        seen = observe(state)
        np.testing.assert_array_equal(planes[place], seen.planes)
        np.testing.assert_allclose(rows["scalars"][place], seen.scalars)
    assert planes[5, ..., 2].sum() == 2, "the handicap stones"


def test_targets_of_the_end(several: tuple[RowMaker, Rows]) -> None:
    """Only of the game that was counted as the board stands."""
    _, rows = several
    np.testing.assert_array_equal(rows["score"][:3], [8.5, -8.5, 8.5])
    np.testing.assert_array_equal(rows["ownership"][0], np.ones((3, 3)))
    np.testing.assert_array_equal(rows["ownership"][1], -np.ones((3, 3)))
    assert np.isnan(rows["score"][3:]).all()
    assert (rows["ownership"][3:] == row.UNKNOWN).all()


def test_games_that_do_not_fit() -> None:
    maker, rows = made(
        sgf(PLAYED, "SZ[3]RE[Void]"),
        sgf("", "SZ[3]RE[B+R]"),
        sgf(";B[aa];W[aa]"),
        sgf(";B[aa];W[];B[];W[bb]"),
        sgf(";B[aa]", "SZ[5]RE[B+R]"),
        Record("tic_tac_toe", {}, (0,), result=1.0),
        sgf(PLAYED, "SZ[3]KM[0.5]RE[W+0.5]RU[koPOSITIONALscoreTERRITORYtaxNONEsui0]"),
        sgf(PLAYED),
    )
    assert maker.skipped == {
        "has no result": 1,
        "has no moves": 1,
        "has a move that is not legal": 1,
        "has moves after its end": 1,
        "does not fit the game": 2,
        "is won by other scoring rules": 1,
    }
    assert maker.examples["does not fit the game"] == "a file: a board of 5x5, expected at most 3x3"
    assert maker.examples["has moves after its end"] == "move 4 of a file"
    assert len(rows["ply"]) == 3


def test_a_smaller_board_lies_in_the_corner() -> None:
    game = games.make("go", size=4)
    _, rows = made(sgf(";B[cc]"), game=game, form=RowFormat.of(game, HEADS))
    planes = row.unpack_planes(rows["planes"], (4, 4, 12))
    np.testing.assert_array_equal(planes[0, ..., 0], np.pad(np.ones((3, 3), bool), (0, 1)))
    assert rows["policy"][0].argmax() == 2 * 4 + 2
    assert not list(sanity.problems(RowFormat.of(game, HEADS), rows))


@pytest.mark.slow
def test_katagos_observation() -> None:
    game = games.make("go", size=3, komi=0.5, observation="katago")
    form = RowFormat.of(game, HEADS)
    _, rows = made(sgf(PLAYED), game=game, form=form)
    assert not list(sanity.problems(form, rows))
    assert row.unpack_planes(rows["planes"], (3, 3, 22))[1, 1, 1, 2], "the opponent's stone in the centre"
    assert rows["value_weight"].tolist() == [1, 1, 1]


def test_other_games() -> None:
    game = games.make("tic_tac_toe")
    form = RowFormat.of(game)
    won = Record.of(game, (0, 3, 1, 4, 2), result=1.0, values=(None, 0.25, None, None, None))
    maker, rows = made(won, Record.of(game, (0, 3, 1, 4, 2), result=-1.0), game=game, form=form)
    assert maker.skipped == {"has another result than its moves": 1}
    np.testing.assert_array_equal(rows["outcome"].argmax(1), [0, 2, 0, 2, 0])
    np.testing.assert_array_equal(rows["search_value"], [1, 0.25, 1, -1, 1])
    maker, _ = made(Record.of(games.make("hex", size=3), (0,), result=1.0), game=games.make("hex", size=5), form=form)
    assert maker.examples == {"does not fit the game": "a file: size: expected 5, got 3"}
