"""A sequential probability ratio test of whether one player is stronger than another.

It compares two hypotheses, "A is `low` Elo stronger" and "A is `high` Elo stronger", by the logarithm of how much
likelier the second makes the games. It looks at pairs of games with the same opening, since the games of a pair
depend on each other. The scores of pairs are taken as normally distributed with an unknown variance (the generalised
test of Van den Bergh, as used for chess programs).
"""

import math
from dataclasses import dataclass

import numpy as np

from tengen.match.results import expected_share

_PAIR = 0.125  # variance of a pair of independent, even games; one is added, so that equal pairs are not certainty


@dataclass(frozen=True)
class Sprt:
    """The test; `error` is how often it may be wrong, on either side."""

    low: float  # Elo: not enough
    high: float  # Elo: enough
    error: float

    @property
    def bound(self) -> float:
        """Beyond this (below its negative) the test is over: Wald's bound for equal errors."""
        return math.log((1 - self.error) / self.error)

    def ratio(self, pairs: np.ndarray) -> float:
        """The log likelihood ratio after pairs with these shares of the points (Float[P], in [0, 1])."""
        count = len(pairs)
        if count == 0:
            return 0.0
        mean = float(pairs.mean())
        variance = (float(((pairs - mean) ** 2).sum()) + _PAIR) / count
        misfit = [variance + (mean - expected_share(elo)) ** 2 for elo in (self.low, self.high)]
        return count / 2 * math.log(misfit[0] / misfit[1])

    def decided(self, pairs: np.ndarray) -> bool | None:
        """True if A is stronger, False if not; None if more games are needed."""
        ratio = self.ratio(pairs)
        return None if abs(ratio) < self.bound else ratio > 0
