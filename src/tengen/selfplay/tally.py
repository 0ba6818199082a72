"""Results and lengths of the games of self-play, and how well the values of the searches predicted the results."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tengen.selfplay.finished import Finished

BINS = 10
"""Bins of the values from -1 to 1 in the calibration."""


@dataclass(frozen=True)
class GameTally:
    """Sums over all games so far. The bins of the calibration go from the lowest values to the highest."""

    games: int = 0
    first: int = 0  # won by player 0
    draws: int = 0
    second: int = 0  # won by player 1
    moves: int = 0
    predicted: tuple[int, ...] = (0,) * BINS  # searches whose value, for the player to move, was in the bin
    points: tuple[float, ...] = (0.0,) * BINS  # points of these players in their games, from 0 to 1 each

    def plus(self, finished: Finished) -> Self:
        """The sums with these games added, whose arrays are on the host. Players alternate."""
        results, lengths = np.asarray(finished.result, np.float64), np.asarray(finished.length)
        values = np.asarray(finished.value, np.float64)
        plies = np.arange(values.shape[1] if values.ndim == 2 else 0)
        searched = (plies >= np.asarray(finished.opening)[:, None]) & (plies < lengths[:, None])
        outcomes = np.broadcast_to((1 + results[:, None] * (1 - 2 * (plies % 2))) / 2, searched.shape)[searched]
        bins = np.clip((values[searched] + 1) / 2 * BINS, 0, BINS - 1).astype(np.int64)
        predicted = np.bincount(bins, minlength=BINS).tolist()
        points = np.bincount(bins, outcomes, minlength=BINS).tolist()
        return type(self)(
            self.games + len(results),
            self.first + int((results > 0).sum()),
            self.draws + int((results == 0).sum()),
            self.second + int((results < 0).sum()),
            self.moves + int(lengths.sum()),
            tuple(a + b for a, b in zip(self.predicted, predicted, strict=True)),
            tuple(a + b for a, b in zip(self.points, points, strict=True)),
        )

    def values(self) -> dict[str, Any]:
        """For the metrics."""
        return {**vars(self), "points": [round(x, 1) for x in self.points]}
