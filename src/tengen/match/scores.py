"""What the result of a match says: share of the points, how sure that is, and the difference in Elo."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SURE = 1.959964  # standard deviations on either side that hold 95 %
ELO = 400 / math.log(10)  # Elo points per unit of log odds


@dataclass(frozen=True)
class Score:
    """A's points of a match; a draw is half a point. The interval holds the true share with 95 % certainty."""

    wins: int
    draws: int
    losses: int
    low: float
    high: float

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def share(self) -> float:
        return (self.wins + self.draws / 2) / self.games

    @property
    def elo(self) -> float:
        """How much stronger A is, as if one more game had been a draw: never infinite."""
        return elo((self.wins + self.draws / 2 + 0.5) / (self.games + 1))

    @property
    def elo_interval(self) -> tuple[float, float]:
        """95 %; infinite on a side where nothing speaks against it."""
        return elo(self.low), elo(self.high)

    def __str__(self) -> str:
        low, high = self.elo_interval
        return (
            f"{100 * self.share:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f}) of {self.games} games, "
            f"+{self.wins} ={self.draws} -{self.losses}, Elo {self.elo:+.0f} ({low:+.0f} to {high:+.0f})"
        )


def score(results: Sequence[float] | np.ndarray, finished: np.ndarray | None = None) -> Score:
    """The score of games with these results for A (above 0 a win), two and two a pair with colours swapped.

    Games that are not `finished` (Bool[G]) do not count.
    """
    signs = np.sign(np.asarray(results, np.float64))
    if len(signs) == 0 or len(signs) % 2:
        raise ValueError(f"a match is pairs of games, got {len(signs)} results")
    there = np.ones(len(signs), bool) if finished is None else np.asarray(finished, bool)
    if not there.any():
        raise ValueError("a match without a finished game has no score")
    points, games = np.where(there, (signs + 1) / 2, 0).reshape(-1, 2).sum(1), there.reshape(-1, 2).sum(1)
    low, high = interval(points[games > 0] / games[games > 0], games[games > 0])
    wins, draws, losses = (int((signs[there] == sign).sum()) for sign in (1, 0, -1))
    return Score(wins, draws, losses, low, high)


def interval(pairs: np.ndarray, games: np.ndarray | None = None) -> tuple[float, float]:
    """95 % for the mean of shares [P] in [0, 1] of pairs of games, of some of which only one was played (`games` [P]).

    Wilson's interval for as many independent games as would have the variance that the pairs have. The variance
    counts one pair more, as uncertain as two independent games, so that a few equal pairs do not look certain.
    """
    games = np.full(len(pairs), 2) if games is None else games
    count = float(games.sum())
    share = float((games * pairs).sum()) / count
    if 0 < share < 1:
        single = share * (1 - share)
        variance = (((games * (pairs - share)) ** 2).sum() + 2 * single) / count**2
        count = single / variance
    return wilson(share, count)


def wilson(share: float, games: float) -> tuple[float, float]:
    """Wilson's 95 % interval for a share of that many independent games."""
    z = SURE**2 / games
    middle = (share + z / 2) / (1 + z)
    half = math.sqrt(z * share * (1 - share) + z * z / 4) / (1 + z)
    # Rounding must not hide that nothing was won, or lost.
    return 0.0 if share <= 0 else middle - half, 1.0 if share >= 1 else middle + half


def elo(share: float) -> float:
    """The difference in Elo at which the stronger player is expected to get that share of the points."""
    if share <= 0:
        return -math.inf
    return math.inf if share >= 1 else ELO * math.log(share / (1 - share))
