"""Measures the speed of self-play and learning on this machine, for `estimate.py`. Writes nothing.

Speeds are those of an untrained network, whose games may be longer or shorter than later ones.
"""

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tengen import match as arena
from tengen.config.sections import Config
from tengen.config.settings.match import MatchSettings
from tengen.data.store.buffer import RowBuffer
from tengen.games.core import Game
from tengen.jax_setup import device_memory
from tengen.loop.components import Components
from tengen.loop.estimate import Estimate
from tengen.match import players
from tengen.selfplay.finished import on_host
from tengen.selfplay.pacing import Pace
from tengen.selfplay.playing import MOST_PHASES, Actor
from tengen.train.alpha_zero import from_buffer

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
    enough = games >= _TURNOVERS * config.selfplay.games
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
    )


def memory_there() -> int | None:
    """Bytes of the device's memory, or of the machine's if it computes on the CPU; None if unknown."""
    known = device_memory()
    if known is not None or jax.default_backend() != "cpu":
        return known
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def _play(
    parts: Components, weights: Any, actors: Actors, rows: RowBuffer, phases: int, now: Clock
) -> tuple[Actors, RowBuffer, MeasuredPlay]:
    before, began = _searched(actors), now()
    actors, finished = parts.lanes.play(weights, actors, phases, session=1)()
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
