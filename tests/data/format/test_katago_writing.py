"""Rows for KataGo's trainer: every number by an independent computation from the game."""

from pathlib import Path

import numpy as np
import pytest

from tengen.data.format import katago, katago_writing
from tengen.data.format.chunk import read_chunk
from tengen.data.format.rows import Rows
from tests.helpers.katago_files import FORM, SIZE, VISITS, played_games, rows_of
from tests.oracles.katago_targets import KnownTurn


def check_turns(arrays: Rows, rows: Rows, expected: list[KnownTurn], side: int = SIZE) -> None:
    """All arrays of a file against what follows from the games; policies are those of the rows."""
    count, area = len(expected), side * side
    assert list(arrays) == list(katago.shapes(0, side))
    for name, (shape, dtype) in katago.shapes(count, side).items():
        assert (arrays[name].shape, arrays[name].dtype) == (shape, dtype), name
    planes = np.unpackbits(arrays["binaryInputNCHWPacked"], axis=2)[:, :, :area]
    targets = arrays["globalTargetsNC"]
    assert np.isfinite(targets).all()
    for place, one in enumerate(expected):
        np.testing.assert_array_equal(planes[place], one.planes)
        np.testing.assert_allclose(arrays["globalInputNC"][place], one.scalars, atol=1e-6)
        np.testing.assert_array_equal(arrays["scoreDistrN"][place], one.score_bins)
        np.testing.assert_array_equal(arrays["valueTargetsNCHW"][place], one.board)
        for column, value in one.columns.items():
            np.testing.assert_allclose(targets[place, column], value, atol=1e-5, err_msg=f"row {place}, {column}")
    np.testing.assert_array_equal(targets[:, 25], rows["weight"])
    for channel, (policy, weight, column) in enumerate(
        (("policy", "policy_weight", 26), ("opponent_policy", "opponent_weight", 28))
    ):
        np.testing.assert_array_equal(targets[:, column], rows[weight])
        written, known = arrays["policyTargetsNCMove"][:, channel].astype(float), rows[weight] > 0
        assert (written >= 0).all()
        assert (written[~known] == 1).all()
        shares = written[known] / written[known].sum(-1, keepdims=True)
        np.testing.assert_allclose(shares, rows[policy][known].astype(float), atol=5e-4)
    np.testing.assert_array_equal(targets[:, 60], np.where(rows["policy_weight"] > 0, *VISITS))
    assert (arrays["scoreDistrN"].sum(-1) == 100).all()
    assert not arrays["qValueTargetsNCMove"].any()


@pytest.fixture(scope="module")
def made() -> tuple[Rows, Rows, list[KnownTurn]]:
    rows, courses, expected = rows_of(played_games(6))
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
    unwritten = {"moves_left", "stones_in_8", "stones_in_32"}
    for name in set(FORM.fields) - unwritten:
        # Policies are whole numbers in the file, and chances are halves of values.
        np.testing.assert_allclose(again[name].astype(float), rows[name].astype(float), atol=5e-4, err_msg=name)
    assert (again["game"] == rows["game"]).all()


def test_scores_at_the_ends_and_between_two_bins() -> None:
    bins = katago_writing._score_bins(np.array([-1000, 1000, 0.0, 3.5, -3.5, 0.25]), 9)
    assert [np.flatnonzero(row).tolist() for row in bins] == [[0], [137], [68, 69], [72], [65], [68, 69]]
    assert bins[2].max() == 50
    assert bins[5, 69] == 75
