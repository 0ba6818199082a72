"""How long a run will take, calculated from what `measure.py` measured, and whether it is a job for a GPU.

Games and learning share the device, so their times add up. Before anything is compiled or measured, the time that a CPU
would play until learning begins is judged by the size of the network and the number of simulations.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass

from tengen.config.sections import Config
from tengen.config.settings.cluster import ClusterSettings
from tengen.errors import OptionError
from tengen.nets.counting import operations
from tengen.words import clock, counted, duration, in_bytes, program, rate

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
        return games * (1 / self.games_per_second + self.samples_per_game / self.samples_per_second)

    @property
    def samples_per_game(self) -> float:
        return self.rows_per_game * self.samples_per_row

    @property
    def learning_share(self) -> float:
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


@dataclass(frozen=True)
class ClusterPlan:
    """A cluster to estimate: how many devices like the measured one play, and how many learn."""

    title: str
    device: str  # what one is called
    players: float
    learner: float
    note: str = ""  # what the reader should know of these figures

    @staticmethod
    def of(settings: ClusterSettings, nodes: int, gpus_per_node: int | None, backend: str) -> "ClusterPlan":
        """`gpus_per_node` None: a GPU each or, measured on a CPU, none. OptionError if the learner leaves none."""
        cpu = backend == "cpu"
        if cpu and gpus_per_node is None:
            learner = 0.5 if nodes == 1 else 1.0
            title = counted(nodes, "node") + ", each like this machine"
            return ClusterPlan(title, "node", nodes - learner, learner)
        each = gpus_per_node or 1
        total, wanted = nodes * each, settings.learner_gpus
        learner = (0.5 if total == 1 else 1.0) if wanted in ("auto", 0) else float(wanted)
        if learner > each or learner >= total:
            raise OptionError(
                f"cluster.learner_gpus: the learner needs {counted(learner, 'GPU')} of one node, and self-play some "
                f"besides; there are {counted(nodes, 'node')} with {counted(each, 'GPU')} each"
            )
        note = "there is no GPU here: these are the figures of this CPU in place of each GPU" if cpu else ""
        return ClusterPlan(f"{nodes} x {counted(each, 'GPU')}", "GPU", total - learner, learner, note)


def describe_cluster(estimate: Estimate, plan: ClusterPlan) -> Iterator[str]:
    """What a cluster of devices like the measured one would give, and where it saturates, a line each.

    Self-play and learning are on different devices there, so their times do not add up.
    """
    each = estimate.games_per_second * estimate.rows_per_game
    appetite = estimate.samples_per_second / estimate.samples_per_row  # of a learner with one device
    played, used = plan.players * each, appetite * plan.learner
    enough = math.ceil(used / each)
    per_row, advice = f"train.samples_per_row: {estimate.samples_per_row:g}", f"add {plan.device}s for self-play"
    if plan.players > enough:
        advice = f"more {plan.device}s for self-play would wait for the learner"
    lines = {
        plan.title: f"{plan.players:g} for self-play, {plan.learner:g} for the learner",
        "self-play gives": rate(played).replace("/s", " rows/s"),
        "the learner uses": f"at most {rate(used).replace('/s', ' rows/s')} ({per_row})",
        "it saturates at": f"{counted(enough, plan.device)} for self-play: {advice}",
        "1,000,000 rows": clock(1e6 / max(min(played, used), 1e-9)),
        **({"note": plan.note} if plan.note else {}),
    }
    return _aligned(lines)


def describe_memory(parts: Mapping[str, int], there: int | None) -> Iterator[str]:
    total = sum(parts.values())
    of = f" of {in_bytes(there)}" if there else ""
    return _aligned({**{name: in_bytes(size) for name, size in parts.items()}, "together": f"{in_bytes(total)}{of}"})


def describe_disk(row_bytes: int) -> str:
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


_SPEED = 2e10  # operations per second of a core, roughly: 1.3e10 for b3c32, 5.5e10 for b6c96
_LONGEST = 600.0  # seconds until learning begins, on a machine that is fast enough for a run


def seconds_until_learning(config: Config, cores: int) -> float:
    """Roughly how long this many cores of a CPU play until learning can begin."""
    game = config.game.make()
    looks = operations(config.net.architecture(), game)
    play = config.selfplay
    evaluations = play.full_share * config.search.simulations + (1 - play.full_share) * play.cheap_simulations
    rows = 1.0 if play.cheap_weight else play.full_share  # of each move
    return config.data.first_rows * evaluations / rows * looks / (_SPEED * cores)


def is_too_much(config: Config, cores: int) -> bool:
    return seconds_until_learning(config, cores) > _LONGEST


def advice(config: Config, cores: int, known: Iterable[tuple[str, Config]]) -> str:
    """The message for users who start this run on a CPU; `known` are configurations to choose from, by name."""
    long = duration(seconds_until_learning(config, cores))
    fitting = [(name, other) for name, other in known if not (name.endswith("_gpu") or is_too_much(other, cores))]
    kind = type(config.game.make())
    alike = [name for name, other in fitting if isinstance(other.game.make(), kind)]
    instead = alike or [name for name, _ in fitting]
    suits = f"What suits a CPU: {', '.join(f'{program()} run {name}' for name in instead)}\n" if instead else ""
    return (
        f"{config.run.name} is a job for a GPU, and JAX finds none here: on {counted(cores, 'CPU core')} "
        f"self-play would take about {long} before learning begins.\n{suits}"
        "This run goes on all the same; Ctrl-C stops it, and `tengen estimate` measures how long it will take."
    )
