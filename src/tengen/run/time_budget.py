"""How a run with a goal of minutes divides its time, so that matches and writing end with the goal. Pure functions."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from tengen.config.settings.run import GoalSection

RATINGS = 5  # at least, over a goal of minutes, besides that of the untrained network
_MATCHES = 0.35  # share of the time that matches may take, compiling them included
_FIRST = 0.2  # share of the time for the first rating, which compiles the matches
_LAST = 0.06  # share of the time that is always kept for the last rating
_MOST_AT_END = 0.15  # share of the time that the last rating may take


@dataclass(frozen=True)
class TimeBudget:
    """The time of a run with a goal of `goal` seconds, None without one; a rating is due every `every` seconds."""

    goal: float | None
    every: float

    @staticmethod
    def of(goal: GoalSection, minutes: float) -> "TimeBudget":
        """For a configuration with `minutes` between two ratings, which are shortened to a fifth of the goal."""
        if goal.minutes is None:
            return TimeBudget(None, 60 * minutes)
        return TimeBudget(60 * goal.minutes, 60 * min(minutes, goal.minutes / RATINGS))

    def for_rating(self, elapsed: float, spent: float, end: float) -> float:
        """Seconds for a rating that begins now; matches took `spent` so far, and `end` is reserved for the end."""
        if self.goal is None:
            return math.inf
        to_come = max(self.goal - end - elapsed, 0.0) / self.every + 1
        fair = (_MATCHES * self.goal - spent) / to_come
        if spent == 0:
            fair = max(fair, _FIRST * self.goal)
        return max(min(fair, self.goal - end - elapsed), 0.0)

    def for_last_rating(self, expected: Callable[[float], float], spent: float) -> float:
        """Seconds to reserve for the last rating; `expected(most)` says how many it would use of at most `most`."""
        if self.goal is None:
            return 0.0
        most = min(_MATCHES * self.goal - spent, _MOST_AT_END * self.goal)
        return expected(max(most, _LAST * self.goal))

    def for_writing(self, measured: float | None) -> float:
        """Seconds to reserve for saving the network and closing; saving took `measured` seconds before, if ever."""
        if self.goal is None:
            return 0.0
        saving = min(max(0.02 * self.goal, 1.0), 4.0) if measured is None else 1.2 * measured
        return saving + self._closing

    def until_closing(self, elapsed: float) -> float:
        """Seconds for the last rating."""
        return math.inf if self.goal is None else self.goal - elapsed - self._closing

    @property
    def _closing(self) -> float:
        """Seconds to reserve for the last lines."""
        return min(0.01 * (self.goal or 0.0), 2.0)

    def stretched(self, elapsed: float, end: float) -> float:
        """The time as if nothing were reserved for the `end`: it reaches the goal when play must stop."""
        if self.goal is None or end <= 0:
            return elapsed
        return elapsed * self.goal / max(self.goal - end, 1e-9)


class SteadyProgress:
    """The share of a run's time that is over, for schedules.

    The estimate of the time that is left may change at any moment. The share then rises faster or slower, but it never
    falls or jumps, and it is 1 when no time is left.
    """

    def __init__(self) -> None:
        self._share = 0.0
        self._elapsed = 0.0

    def at(self, elapsed: float, left: float) -> float:
        """After `elapsed` seconds, with `left` seconds to go."""
        passed = elapsed - self._elapsed
        if passed > 0:
            self._share += (1 - self._share) * passed / (passed + max(left, 0.0))
            self._elapsed = elapsed
        return self._share
