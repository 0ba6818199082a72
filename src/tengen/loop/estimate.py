"""How long a run will take, from what was measured of it. Arithmetic and words alone; see `measuring`.

Games and learning share the device, so their times add up.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from tengen.config.sections import Config
from tengen.monitor.progress import clock

GAMES = (1_000, 10_000, 100_000)  # for which a time is given
ROWS = 100_000  # for which the disk's share is given


@dataclass(frozen=True)
class Estimate:
    """What was measured, and what follows from it."""

    compiling: float  # seconds until the first game and the first step could begin
    moves_per_second: float  # while games are played, and so the next
    evaluations_per_second: float
    samples_per_second: float  # while learning
    moves_per_game: float  # searched ones
    guessed: bool  # whether that is from random games, since too few have ended
    rows_per_game: float
    samples_per_row: float

    @property
    def games_per_second(self) -> float:
        """While games are played."""
        return self.moves_per_second / self.moves_per_game

    def seconds(self, games: float) -> float:
        """To play so many games and to learn from them."""
        return games * (1 / self.games_per_second + self.samples_per_game / self.samples_per_second)

    @property
    def samples_per_game(self) -> float:
        return self.rows_per_game * self.samples_per_row

    @property
    def learning_share(self) -> float:
        """Of the time."""
        return self.samples_per_game / self.samples_per_second / self.seconds(1)

    def games(self, minutes: float | None, games: float | None, rows: float | None, samples: float | None) -> float:
        """How many games are played until the first of these is reached; infinite if there is none."""
        limits = (
            None if minutes is None else max(60 * minutes - self.compiling, 0) / self.seconds(1),
            games,
            None if rows is None else rows / self.rows_per_game,
            None if samples is None else samples / self.samples_per_game,
        )
        return min((limit for limit in limits if limit is not None), default=math.inf)


def describe(estimate: Estimate, config: Config) -> Iterator[str]:
    """The speeds and the times, a line each."""
    searched = f"{estimate.moves_per_game:.0f} searched moves each"
    length = f"{searched}, guessed from random games" if estimate.guessed else searched
    rows = estimate.games_per_second * estimate.rows_per_game
    lines = {
        "compiling": f"{clock(estimate.compiling)}, counted apart",
        "evaluations": f"{_rate(estimate.evaluations_per_second)} while playing",
        "games": f"{_rate(estimate.games_per_second)} while playing ({length})",
        "rows": f"{_rate(rows)} while playing",
        "samples": f"{_rate(estimate.samples_per_second)} while learning",
        "learning": f"{100 * estimate.learning_share:.0f} % of the time",
        **{f"{games:,} games": clock(estimate.seconds(games)) for games in GAMES},
        "the goal": _goal(estimate, config),
    }
    return _aligned(lines)


def describe_memory(parts: Mapping[str, int], there: int | None) -> Iterator[str]:
    """What is needed on the device against what there is, a line each."""
    total = sum(parts.values())
    of = f" of {_size(there)}" if there else ""
    return _aligned({**{name: _size(size) for name, size in parts.items()}, "together": f"{_size(total)}{of}"})


def describe_disk(row_bytes: int) -> str:
    """What rows take on the disk."""
    return f"{ROWS:,} rows take {_size(ROWS * row_bytes)} on the disk"


def _goal(estimate: Estimate, config: Config) -> str:
    goal = config.goal
    parts = [f"{limit:,} {name}" for name, limit in asdict(goal).items() if limit is not None]
    if not parts:
        return "none, the run goes on until it is stopped"
    samples = None if goal.steps is None else goal.steps * config.train.batch
    games = estimate.games(goal.minutes, goal.games, goal.rows, samples)
    rows = games * estimate.rows_per_game
    played = f"{games:,.0f} games, {rows:,.0f} rows, {rows * estimate.samples_per_row:,.0f} samples"
    took = clock(estimate.compiling + estimate.seconds(games))
    return f"{took} for {' or '.join(parts)}, compiling included and matches not: about {played}"


def _aligned(lines: Mapping[str, str]) -> Iterator[str]:
    width = max(map(len, lines))
    return (f"{name:<{width}}  {text}" for name, text in lines.items())


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}/s" if per_second >= 100 else f"{per_second:,.2g}/s"


def _size(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:,.1f} GiB"
