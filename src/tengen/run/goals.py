"""What a run has done, and how far that is from its goal."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from tengen.config.settings.run import GoalSection
from tengen.words import clock, counted


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
