"""What a run has done, and whether that is enough."""

import math
from dataclasses import asdict, dataclass, replace

from tengen.config.settings.run import GoalSection


@dataclass(frozen=True)
class RunCounts:
    """What a run has done, over all its restarts."""

    games: int = 0  # finished
    rows: int = 0
    evaluations: float = 0.0
    seconds: float = 0.0
    sessions: int = 0  # times that it was started

    def plus(self, games: int, rows: int, evaluations: float) -> "RunCounts":
        """After so much more was played."""
        return replace(
            self, games=self.games + games, rows=self.rows + rows, evaluations=self.evaluations + evaluations
        )


def reached(goal: GoalSection, counts: RunCounts, steps: int) -> str:
    """Which part of the goal is reached, in words; empty if none is."""
    done = _done(counts, steps)
    words = {"minutes": "over", "games": "played", "rows": "played", "steps": "learned"}
    for name, limit in asdict(goal).items():
        if limit is not None and done[name] >= limit:
            number = f"{limit:,}" if isinstance(limit, int) else f"{limit:,g}"
            what = f"{name.removesuffix('s')} is" if limit == 1 else f"{name} are"
            return f"{number} {what} {words[name]}"
    return ""


def progress(goal: GoalSection, counts: RunCounts, steps: int) -> float:
    """Share of the goal that is reached, of the part that will be reached first; 0 without a goal."""
    done = _done(counts, steps)
    return max((done[name] / limit for name, limit in asdict(goal).items() if limit is not None), default=0.0)


def further(goal: GoalSection, counts: RunCounts, steps: int) -> dict[str, float | int]:
    """The parts of the goal that are reached, with what to set them to for as much again.

    A run may have done more than twice its goal: when that was lowered, or while the gate judged the last networks.
    """
    done = _done(counts, steps)
    limits = {name: limit for name, limit in asdict(goal).items() if limit is not None and done[name] >= limit}
    return {
        name: limit + (limit if done[name] < 2 * limit else math.ceil(done[name])) for name, limit in limits.items()
    }


def _done(counts: RunCounts, steps: int) -> dict[str, float]:
    """By the names of a goal's parts."""
    return {"minutes": counts.seconds / 60, "games": counts.games, "rows": counts.rows, "steps": steps}
