"""How long a run will take on this machine, and whether it is a job for a GPU.

Self-play and learning are measured, without writing anything. Games and learning share the device, so their times add
up; on a CPU, one of its cores learns while the others play. Speeds are those of an untrained network, whose games may
be longer or shorter than later ones. Before anything is compiled or measured, the time that a CPU would play until
learning begins is judged by the size of the network and the number of simulations.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tengen import match as arena
from tengen.config.sections import Config
from tengen.config.settings.match import MatchSettings
from tengen.config.settings.parts import ClusterSettings
from tengen.data.store.buffer import RowBuffer
from tengen.errors import OptionError
from tengen.games.core import Game
from tengen.loop.components import Components
from tengen.match import players
from tengen.nets.counting import operations
from tengen.selfplay.boards import CORE_SPEED, at_once, on_cpu
from tengen.selfplay.collector import on_host
from tengen.selfplay.pacing import Pace
from tengen.selfplay.playing import MOST_PHASES, Actor
from tengen.train.alpha_zero import from_buffer
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
    waits: float = 1.0  # seconds that games wait for a second of learning: less if a core learns while others play

    @property
    def games_per_second(self) -> float:
        """While games are played."""
        return self.moves_per_second / self.moves_per_game

    def seconds(self, games: float) -> float:
        playing, learning = 1 / self.games_per_second, self.samples_per_game / self.samples_per_second
        return games * max(playing + self.waits * learning, learning)

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
    if config.net.growth:
        larger = ", ".join(step.name for step in config.net.growth_steps)
        lines["the network"] = f"{config.net.label} all the time; the run goes on with {larger} (net.growth), slower"
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
    return f"{ROWS:,} rows take at most {in_bytes(ROWS * row_bytes)} on the disk"


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


_LONGEST = 600.0  # seconds until learning begins, on a machine that is fast enough for a run


def seconds_until_learning(config: Config, cores: int) -> float:
    """Roughly how long this many cores of a CPU play until learning can begin."""
    game = config.game.make()
    looks = operations(config.net.architecture(), game)
    play = config.selfplay
    evaluations = play.full_share * config.search.simulations + (1 - play.full_share) * play.cheap_simulations
    rows = 1.0 if play.cheap_weight else play.full_share  # of each move
    return config.data.first_rows * evaluations / rows * looks / (CORE_SPEED * cores)


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
    games = config.selfplay.games
    most = on_cpu(config, config.game.make(), config.net.architecture(), cores)
    fewer = f"It plays {most:,} games at once here instead of {games:,}, so that the first ones end sooner.\n"
    fewer = fewer if most < games else ""
    return (
        f"{config.run.name} is a job for a GPU, and JAX finds none here: on {counted(cores, 'CPU core')} "
        f"self-play would take about {long} before learning begins.\n{suits}{fewer}"
        "This run goes on all the same; Ctrl-C stops it, and `tengen estimate` measures how long it will take."
    )


_PLAYING = 0.7  # share of the time in which games are measured
_TURNOVERS = 2  # finished games per game at once from which the length of games is taken
_RANDOM_GAMES = 64
Clock = Callable[[], float]
Actors = tuple[Actor, ...]


@dataclass(frozen=True)
class MeasuredPlay:
    seconds: float = 0.0
    moves: int = 0  # searched ones
    evaluations: float = 0.0
    games: int = 0  # finished
    rows: int = 0  # of them


def measure(
    parts: Components, config: Config, seconds: float, show: Callable[[str], None], now: Clock = time.monotonic
) -> Estimate:
    """Play and learn for about `seconds`, not counting compilation; `show` is told what is being done."""
    began = now()
    show("compiling the games")
    key = jax.random.key(config.run.seed)
    weights, actors = parts.weights(), parts.lanes.begin(key)
    actors, rows, first = _play(parts, weights, actors, parts.make_buffer(), 1, now)
    show("compiling the learner")
    _learn(parts, rows, 1, now)
    compiling = now() - began
    show("measuring the games")
    played, rows = _games(parts, weights, actors, rows, _PLAYING * seconds, now)
    show("measuring the learner")
    steps_per_second = _steps(parts, rows, (1 - _PLAYING) * seconds, now)
    games, moves = first.games + played.games, first.moves + played.moves
    enough = games >= _TURNOVERS * at_once(config, parts.game, parts.spec)
    length = moves / games if enough else _random_length(parts.game, config.selfplay.opening_moves, key)
    share = 1.0 if config.selfplay.cheap_weight else config.selfplay.full_share
    return Estimate(
        compiling=compiling,
        moves_per_second=played.moves / played.seconds,
        evaluations_per_second=played.evaluations / played.seconds,
        samples_per_second=steps_per_second * config.train.batch,
        moves_per_game=length,
        guessed=not enough,
        rows_per_game=(first.rows + played.rows) / games if enough else share * length,
        samples_per_row=config.train.samples_per_row,
        waits=parts.lanes.waits,
    )


def _play(
    parts: Components, weights: Any, actors: Actors, rows: RowBuffer, phases: int, now: Clock
) -> tuple[Actors, RowBuffer, MeasuredPlay]:
    before, began = _searched(actors), now()
    actors, finished = parts.lanes.play(weights, actors, phases, session=1).wait()
    games = [on_host(lane) for lane in finished]
    seconds = now() - began
    for lane in finished:
        rows = parts.append(rows, lane.rows, lane.rows_count)
    played = MeasuredPlay(
        seconds=seconds,
        moves=_searched(actors) - before + sum(int(np.sum(lane.length - lane.opening)) for lane in games),
        evaluations=sum(float(actor.evaluations) for actor in actors),
        games=sum(len(lane.length) for lane in games),
        rows=sum(len(lane.rows["ply"]) for lane in games),
    )
    return actors, rows, played


def _searched(actors: Actors) -> int:
    histories = (actor.history for actor in actors)
    return sum(int(np.sum(jax.device_get(each.ply) - jax.device_get(each.opening))) for each in histories)


def _games(
    parts: Components, weights: Any, actors: Actors, rows: RowBuffer, seconds: float, now: Clock
) -> tuple[MeasuredPlay, RowBuffer]:
    total, pace, began = MeasuredPlay(), Pace(1.0, most=MOST_PHASES, calls=1), now()
    while total.moves == 0 or now() - began < seconds:
        units = pace.units
        actors, rows, more = _play(parts, weights, actors, rows, units, now)
        pace = pace.after(units, more.seconds)
        total = MeasuredPlay(**{name: value + getattr(more, name) for name, value in asdict(total).items()})
    return total, rows


def _learn(parts: Components, rows: RowBuffer, steps: int, now: Clock) -> float:
    """Seconds that this many steps take. What they learn does not matter."""
    trainer, began = parts.trainer, now()
    data = (rows, jnp.int32(parts.capacity))
    trainer.state, figures = trainer.learner.many(trainer.state, jax.random.key(0), from_buffer, data, steps)
    jax.block_until_ready(figures)
    return now() - began


def _steps(parts: Components, rows: RowBuffer, seconds: float, now: Clock) -> float:
    pace, began, steps, spent = Pace(1.0, calls=1), now(), 0, 0.0
    while steps == 0 or now() - began < seconds:
        units = pace.units
        took = _learn(parts, rows, units, now)
        pace, steps, spent = pace.after(units, took), steps + units, spent + took
    return steps / spent


def _random_length(game: Game, opening_moves: int, key: jax.Array) -> float:
    """The mean number of searched moves in random games, because the games that end first are shorter than most."""
    a, b = players.random(game), players.random(game)
    match = arena.play(game, a, b, key, MatchSettings(games=_RANDOM_GAMES, opening_moves=1))
    return max(float(match.length.mean()) - opening_moves / 2, 1.0)
