"""How a run with a goal of minutes divides its time, so that matches and writing end with the goal. Pure functions."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from tengen.config.settings.run import GoalSection

RATINGS = 5  # at least, over a goal of minutes, besides that of the untrained network
_MATCHES = 0.35  # share of the time that matches may take, compiling them included
_FIRST = 0.2  # share of the time for the first rating, which compiles the matches
_LAST = 0.06  # share of the time that is always kept for the last rating


@dataclass(frozen=True)
class TimeBudget:
    """For a run of `goal` seconds, None without that goal; a rating is due after `every` seconds."""

    goal: float | None
    every: float

    @staticmethod
    def of(goal: GoalSection, minutes: float) -> "TimeBudget":
        """For a configuration with these `minutes` between two ratings; they are at most a fifth of the goal."""
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
        """Seconds to reserve for the last rating; `expected` gives how many it needs of at most this many."""
        if self.goal is None:
            return 0.0
        return expected(max(_MATCHES * self.goal - spent, _LAST * self.goal))

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
