"""What a run has done, how far that is from its goal, and how it divides its time so that all ends with the goal."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

from tengen.config.settings.run import GoalSection
from tengen.words import clock, counted

RATINGS = 5  # at least, over a goal of minutes, besides that of the untrained network
_MATCHES = 0.35  # share of the time that matches may take, compiling them included
_FIRST = 0.2  # share of the time for the first rating, which compiles the matches
_LAST = 0.06  # share of the time that is always kept for the last rating
_MOST_AT_END = 0.15  # share of the time that the last rating may take


@dataclass(frozen=True)
class RunCounts:
    """What a run has done, over all its restarts."""

    games: int = 0  # finished
    rows: int = 0
    evaluations: float = 0.0
    seconds: float = 0.0
    sessions: int = 0  # times that it was started

    def plus(self, games: int, rows: int, evaluations: float) -> "RunCounts":
        return replace(
            self, games=self.games + games, rows=self.rows + rows, evaluations=self.evaluations + evaluations
        )


@dataclass(frozen=True)
class Outlook:
    """The part of the goal that will be reached first."""

    goal: str  # in words, as "10 minutes"
    share: float  # that is done, 0 to 1
    left: float | None  # seconds; None if the time cannot be estimated

    def __str__(self) -> str:
        left = "" if self.left is None else f", {clock(self.left)} left"
        return f"{100 * self.share:.0f} % of {self.goal}{left}"


def outlook(
    goal: GoalSection, counts: RunCounts, steps: int, speeds: Mapping[str, float | None] | None = None
) -> Outlook | None:
    """The part of the goal that comes first, by `speeds` (per second) or the mean speed; None if there is no goal."""
    amounts, found = _done(counts, steps), []
    for name, limit in _limits(goal).items():
        if name == "minutes":
            done, whole, speed = counts.seconds, 60 * limit, 1.0
        else:
            done, whole, speed = amounts[name], limit, (speeds or {}).get(name)
        if not speed and counts.seconds > 0:
            speed = done / counts.seconds
        left = 0.0 if done >= whole else (whole - done) / speed if speed and speed > 0 else None
        share = min(done / whole, 1.0) if whole > 0 else 1.0
        found.append(Outlook(counted(limit, name.removesuffix("s")), share, left))
    return min(found, key=lambda part: (math.inf if part.left is None else part.left, -part.share), default=None)


def reached(goal: GoalSection, counts: RunCounts, steps: int) -> str:
    """The part of the goal that is reached, in words; empty if none is."""
    done = _done(counts, steps)
    words = {"minutes": "over", "games": "played", "rows": "played", "steps": "learned"}
    for name, limit in _limits(goal).items():
        if done[name] >= limit:
            return f"{counted(limit, name.removesuffix('s'))} {'is' if limit == 1 else 'are'} {words[name]}"
    return ""


def progress(goal: GoalSection, counts: RunCounts, steps: int) -> float:
    """Share of the goal that is reached, of the part that will be reached first; 0 without a goal."""
    done = _done(counts, steps)
    return max((done[name] / limit for name, limit in _limits(goal).items()), default=0.0)


def further(goal: GoalSection, counts: RunCounts, steps: int) -> dict[str, float | int]:
    """New limits for the parts of the goal that are reached, for as much again.

    A run may have done more than twice its goal: when that was lowered, or while the gate judged the last networks.
    """
    done = _done(counts, steps)
    limits = {name: limit for name, limit in _limits(goal).items() if done[name] >= limit}
    return {
        name: limit + (limit if done[name] < 2 * limit else math.ceil(done[name])) for name, limit in limits.items()
    }


def _limits(goal: GoalSection) -> dict[str, float | int]:
    return {name: limit for name, limit in asdict(goal).items() if limit is not None}


def _done(counts: RunCounts, steps: int) -> dict[str, float]:
    """By the names of a goal's parts."""
    return {"minutes": counts.seconds / 60, "games": counts.games, "rows": counts.rows, "steps": steps}


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
