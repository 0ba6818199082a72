"""Counts of finished games, by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from tengen.selfplay.collector import GameTally


def finished(**arrays: Any) -> Any:
    return SimpleNamespace(**{name: np.array(values) for name, values in arrays.items()})


def test_games_by_result_length_and_calibration() -> None:
    games = finished(
        result=[1.0, 0.0, -1.0],
        length=[3, 2, 3],
        opening=[1, 0, 3],  # nothing of the last game was searched
        value=[[0.0, -0.95, 0.95, 9.0], [0.05, 0.05, 9.0, 9.0], [0.0, 0.0, 0.0, 9.0]],
    )
    tally = GameTally().plus(games)
    assert (tally.games, tally.first, tally.draws, tally.second, tally.moves) == (3, 1, 1, 1, 8)
    # The second move of the first game was that of the loser, who expected to lose; the third that of the winner.
    assert tally.predicted == (1, 0, 0, 0, 0, 2, 0, 0, 0, 1)
    assert tally.points == (0.0, 0, 0, 0, 0, 1.0, 0, 0, 0, 1.0)
    twice = tally.plus(games)
    assert (twice.games, twice.predicted[5], twice.points[5]) == (6, 4, 2.0)
    assert twice.values()["points"][9] == 2.0


def test_no_games() -> None:
    nothing = finished(result=[], length=[], opening=[], value=np.zeros((0, 4)))
    assert GameTally().plus(nothing) == GameTally()
