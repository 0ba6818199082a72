"""How long a run will take, calculated from what `measure.py` measured.

Games and learning share the device, so their times add up.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from tengen.config.sections import Config
from tengen.words import clock, counted, in_bytes, rate

GAMES = (1_000, 10_000, 100_000)  # for which the time is printed
ROWS = 100_000  # for which the size on disk is printed


@dataclass(frozen=True)
class Estimate:
    """What was measured, and what follows from it."""

    compiling: float  # seconds until the first game and the first step could begin
    moves_per_second: float  # while games are played
    evaluations_per_second: float  # while games are played
    samples_per_second: float  # while learning
    moves_per_game: float  # that are searched
    guessed: bool  # whether moves_per_game is from random games, because too few games have ended
    rows_per_game: float
    samples_per_row: float

    @property
    def games_per_second(self) -> float:
        """While games are played."""
        return self.moves_per_second / self.moves_per_game

    def seconds(self, games: float) -> float:
        """The time to play this many games and to learn from them."""
        return games * (1 / self.games_per_second + self.samples_per_game / self.samples_per_second)

    @property
    def samples_per_game(self) -> float:
        return self.rows_per_game * self.samples_per_row

    @property
    def learning_share(self) -> float:
        """The share of the time that is spent learning."""
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
    """The speeds and the times, one per line."""
    searched = f"{estimate.moves_per_game:.0f} searched moves each"
    length = f"{searched}, guessed from random games" if estimate.guessed else searched
    rows = estimate.games_per_second * estimate.rows_per_game
    lines = {
        "compiling": f"{clock(estimate.compiling)}, counted apart",
        "evaluations": f"{rate(estimate.evaluations_per_second)} while playing",
        "games": f"{rate(estimate.games_per_second)} while playing ({length})",
        "rows": f"{rate(rows)} while playing",
        "samples": f"{rate(estimate.samples_per_second)} while learning",
        "learning": f"{100 * estimate.learning_share:.0f} % of the time",
        **{f"{games:,} games": clock(estimate.seconds(games)) for games in GAMES},
        "the goal": _goal(estimate, config),
    }
    return _aligned(lines)


def describe_cluster(estimate: Estimate, config: Config, nodes: int, gpus_per_node: int) -> Iterator[str]:
    """What a cluster of devices like the measured one would achieve, and where it saturates, line by line.

    Self-play and learning are on different devices there, so their times do not add up.
    """
    each = estimate.games_per_second * estimate.rows_per_game
    appetite = estimate.samples_per_second / estimate.samples_per_row  # of a learner with one device
    wanted = config.cluster.learner_gpus
    total = nodes * gpus_per_node
    share = 0.5 if total == 1 else 1.0  # of the learner; a single GPU plays as well
    learner = min(share if wanted == "auto" else wanted, gpus_per_node) or 1.0
    players = max(total - learner, 0.5 if total == 1 else 0.0)
    played, used = players * each, appetite * learner
    enough = math.ceil(used / each)
    per_row, advice = f"train.samples_per_row: {estimate.samples_per_row:g}", "add GPUs for self-play"
    if players > enough:
        advice = "more GPUs for self-play would wait for the learner"
    split = f"{players:g} for self-play, {learner:g} for the learner"
    lines = {
        f"{nodes} x {counted(gpus_per_node, 'GPU')}": f"{split}, each like this device",
        "self-play gives": rate(played).replace("/s", " rows/s"),
        "the learner uses": f"at most {rate(used).replace('/s', ' rows/s')} ({per_row})",
        "it saturates at": f"{counted(enough, 'GPU')} for self-play: {advice}",
        "1,000,000 rows": clock(1e6 / max(min(played, used), 1e-9)),
    }
    return _aligned(lines)


def describe_memory(parts: Mapping[str, int], there: int | None) -> Iterator[str]:
    """The memory that is needed on the device and what it has, line by line."""
    total = sum(parts.values())
    of = f" of {in_bytes(there)}" if there else ""
    return _aligned({**{name: in_bytes(size) for name, size in parts.items()}, "together": f"{in_bytes(total)}{of}"})


def describe_disk(row_bytes: int) -> str:
    """How much space rows take on the disk."""
    return f"{ROWS:,} rows take {in_bytes(ROWS * row_bytes)} on the disk"


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
