"""Rows for KataGo's trainer: every number by an independent computation from the game."""

from pathlib import Path

import numpy as np
import pytest

from tengen.data.format import katago_writing
from tengen.data.format.chunk import read_chunk
from tengen.data.format.rows import Rows
from tests.helpers.katago_files import FORM, SIZE, VISITS, check_turns, played_games, rows_of
from tests.oracles.katago_targets import KnownTurn


@pytest.fixture(scope="module", params=[True, False], ids=["with scores of the search", "without"])
def made(request: pytest.FixtureRequest) -> tuple[Rows, Rows, list[KnownTurn]]:
    rows, courses, expected = rows_of(played_games(6, scored=request.param))
    assert courses.cut.any()
    assert not courses.cut.all()
    assert 0 in courses.result.tolist() or len(set(courses.result.tolist())) > 1
    return rows, katago_writing.arrays(rows, courses, SIZE * SIZE, VISITS), expected


def test_every_number_follows_from_the_game(made: tuple[Rows, Rows, list[KnownTurn]]) -> None:
    rows, arrays, expected = made
    check_turns(arrays, rows, expected)
    games = {tuple(pieces) for pieces in arrays["globalTargetsNC"][:, 41:47].tolist()}
    assert len(games) == 6


def test_what_is_written_is_read_back(tmp_path: Path, made: tuple[Rows, Rows, list[KnownTurn]]) -> None:
    rows, arrays, _ = made
    path = tmp_path / "net" / "tdata" / "0123456789ABCDEF.npz"
    katago_writing.write(path, arrays)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    with np.load(path) as found:  # as KataGo's scripts read it
        assert {name: found[name].tolist() for name in found} == {name: arrays[name].tolist() for name in arrays}
    again, meta = read_chunk(path)
    assert (meta.rows, meta.games, meta.network) == (len(rows["ply"]), 6, "net")
    unwritten = {"moves_left", "stones_in_8", "stones_in_32", katago_writing.SCORE}
    for name in set(FORM.fields) - unwritten:
        # Policies are whole numbers in the file, and chances are halves of values.
        np.testing.assert_allclose(again[name].astype(float), rows[name].astype(float), atol=5e-4, err_msg=name)
    assert (again["game"] == rows["game"]).all()


def test_scores_at_the_ends_and_between_two_bins() -> None:
    bins = katago_writing._score_bins(np.array([-1000, 1000, 0.0, 3.5, -3.5, 0.25]), 9)
    assert [np.flatnonzero(row).tolist() for row in bins] == [[0], [137], [68, 69], [72], [65], [68, 69]]
    assert bins[2].max() == 50
    assert bins[5, 69] == 75
