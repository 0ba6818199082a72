"""Steps per second of the rules: step, legal mask and observation of a batch of games, next to pgx.

All sides run the same loop: choose a legal move by a cheap pseudo-random rule, play it, and keep the new state, mask
and observation, so that all three must really be computed at every step.
"""

import importlib.util
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tengen import games
from tengen.bench.figures import RATIO, Figure
from tengen.bench.timing import Clock, Timing, in_turn
from tengen.games.core import Game
from tengen.jax_setup import explaining_memory

SETTINGS = (
    {"ko": "simple", "suicide": False},
    {"ko": "positional", "suicide": False},
    {"ko": "situational", "suicide": True},
)
_BOARDS = ((9, 4096), (19, 512))  # size, and games at once
_STEPS = 100  # of one measurement
_COMPARED = 64  # games whose results are compared
_MOVES = 150  # of each of them


@dataclass(frozen=True)
class BenchCase:
    label: str
    game: str
    options: dict[str, Any]
    batch: int


@dataclass(frozen=True)
class BenchResult:
    """What was measured for one case; times are for one step of the whole batch."""

    label: str
    batch: int
    bytes_per_node: int
    microseconds: float
    pgx_microseconds: float | None  # None: pgx does not have the game, or is not installed
    device: str
    after: int = 0  # moves before the measured ones
    noise: float = 0.0  # of the time, as a share of it
    ratio_noise: float = 0.0  # of pgx's time divided by ours

    @property
    def steps_per_second(self) -> float:
        return self.batch / self.microseconds * 1e6

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"steps_per_second": self.steps_per_second}

    def figures(self) -> list[Figure]:
        name = f"rules, {self.label}, {self.batch} games" + (f", after {self.after} moves" if self.after else "")
        found = [Figure(name, self.microseconds, "us", self.noise)]
        if self.pgx_microseconds is not None:
            ratio = self.pgx_microseconds / self.microseconds
            found.append(Figure(name.replace("rules", "rules / pgx", 1), ratio, RATIO, self.ratio_noise))
        return found


def suite(batch: int | None) -> list[BenchCase]:
    """The games that `tengen bench games` measures when it is told nothing; `batch` None suits the device."""
    large = jax.default_backend() != "cpu"
    usual = batch or (4096 if large else 256)
    return [
        BenchCase("tic_tac_toe", "tic_tac_toe", {}, usual),
        BenchCase("connect_four", "connect_four", {}, usual),
        BenchCase("othello", "othello", {}, usual),
        BenchCase("hex 11x11", "hex", {"size": 11, "swap": True}, usual),
        BenchCase("hironaka", "hironaka", {}, usual),
        BenchCase("chess", "chess", {}, batch or (1024 if large else 256)),
        BenchCase("go 9x9", "go", {"size": 9, "komi": 7.5, "ko": "positional"}, usual),
        BenchCase("go 19x19", "go", {"size": 19, "komi": 7.5, "ko": "positional"}, batch or (512 if large else 256)),
    ]


def measure(
    cases: list[BenchCase],
    steps: int,
    after: int,
    repeats: int,
    with_pgx: bool,
    seed: int,
    now: Clock = time.perf_counter,
) -> Iterator[BenchResult]:
    """One result per case, as soon as it is there; `after` moves are played before the steps that count."""
    for case in cases:
        game = games.make(case.game, **case.options)
        keys = jax.random.split(jax.random.key(seed), case.batch)
        node = jax.eval_shape(lambda key, game=game: game.split(game.init(key))[0], keys[0])
        states = jax.jit(jax.vmap(game.init))(keys)
        begun = (states, jax.jit(jax.vmap(game.look))(states))
        functions = {"ours": _ours(game.step_and_look, begun, steps, after)}
        if with_pgx and (env := _pgx_counterpart(case.game, case.options)):
            first, step = jax.jit(jax.vmap(env.init))(keys), jax.vmap(env.step)
            functions["pgx"] = _playing(first, step, lambda now: now.legal_action_mask, steps, after)
        with explaining_memory("--batch"):
            found = in_turn(functions, repeats, now)
        ours, theirs = found["ours"], found.get("pgx")
        yield BenchResult(
            case.label,
            case.batch,
            sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(node)),
            ours.median / steps * 1e6,
            None if theirs is None else theirs.median / steps * 1e6,
            jax.devices()[0].device_kind,
            after,
            ours.noise,
            0.0 if theirs is None else theirs.share_of(ours)[1],
        )


def pgx_is_installed() -> bool:
    """Whether there is something to compare with."""
    return importlib.util.find_spec("pgx") is not None


def choose(legal: Array, step: Array) -> Array:
    """Int32[B]: a legal action each, different from game to game and from step to step; the last one (pass) rarely."""
    batch, actions = legal.shape
    word = jnp.uint32
    mixed = jnp.arange(batch, dtype=word)[:, None] * word(97531) + step.astype(word) * word(40503)
    mixed = (mixed ^ (jnp.arange(actions, dtype=word) * word(2654435761))) * word(2246822519)
    weight = ((mixed ^ (mixed >> 15)) >> 8).astype(jnp.int32) + 2
    weight = jnp.where(jnp.arange(actions) == actions - 1, 1, weight)
    return jnp.argmax(jnp.where(legal, weight, 0), -1).astype(jnp.int32)


Step = Callable[[Any, Array], Any]


def _playing(start: Any, step: Step, mask: Callable[[Any], Array], steps: int, after: int) -> Callable[[], Any]:
    """The loop that all sides run. `start` is all that a step gives."""

    def play(first: int, last: int) -> Callable[[Any], Any]:
        return jax.jit(lambda now: jax.lax.fori_loop(first, last, lambda i, now: step(now, choose(mask(now), i)), now))

    with explaining_memory("--batch"):
        start = play(0, after)(start) if after else start
    measured = play(after, after + steps)
    return lambda: measured(start)


def _ours(step: Step, start: tuple[Any, Any], steps: int, after: int = 0) -> Callable[[], Any]:
    """For `step_and_look` and what it gives."""
    return _playing(start, lambda now, actions: step(now[0], actions), lambda now: now[1].legal, steps, after)


def _pgx_counterpart(game: str, options: dict[str, Any]) -> Any | None:
    """The same game in pgx, or None if it has none."""
    if not pgx_is_installed():
        return None
    import pgx
    from pgx.go import Go

    if game == "go":
        return Go(size=options["size"], komi=options["komi"])
    if game == "hex" and (options["size"], options["swap"]) != (11, True):
        return None
    name = game.removeprefix("pgx:")
    return pgx.make(name) if name in pgx.available_envs() else None


class GoTimes(NamedTuple):
    """One setting; times are those of all steps."""

    size: int
    batch: int
    setting: dict[str, Any]
    differ: int  # numbers of states, masks and observations that were not equal: 0 is right
    plain: Timing
    program: Timing
    nodes: Timing  # the program on states without the list of all positions, as a search keeps them

    @staticmethod
    def microseconds(timing: Timing) -> float:
        return timing.median / _STEPS * 1e6

    def figures(self) -> list[Figure]:
        rules = f"{self.setting['ko']} ko{', suicide' if self.setting['suicide'] else ''}"
        where = f"go {self.size}x{self.size}, {rules}, {self.batch} games"
        times = {"plain version": self.plain, "GPU program": self.program, "GPU program on tree nodes": self.nodes}
        return [Figure(f"{name}, {where}", self.microseconds(time), "us", time.noise) for name, time in times.items()]


def go_programs(repeats: int) -> Iterator[GoTimes]:
    """All sizes and settings. Needs an NVIDIA GPU."""
    for size, batch in _BOARDS:
        for setting in SETTINGS:
            game: Any = games.make("go", size=size, **setting)
            states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(0), batch))
            nodes = jax.jit(jax.vmap(game.split))(states)[0]
            look = jax.jit(jax.vmap(game.look))(states)
            few = jax.tree.map(lambda x: x[:_COMPARED], states)
            plain = lambda states, actions, game=game: Game.step_and_look(game, states, actions)  # noqa: E731
            functions = {
                "plain": _ours(plain, (states, look), _STEPS),
                "program": _ours(game.step_and_look, (states, look), _STEPS),
                "nodes": _ours(game.step_and_look, (nodes, look), _STEPS),
            }
            yield GoTimes(size, batch, setting, differences(game, few), **in_turn(functions, repeats))


def differences(game: Any, states: Any) -> int:
    """How many numbers of states, masks and observations differ between the two versions in random games."""

    def play(i: Any, carry: Any) -> Any:
        states, legal, wrong = carry
        actions = choose(legal, i)
        plain = Game.step_and_look(game, states, actions)
        fused = game.fused_step_and_look(states, actions, jnp.zeros(actions.shape, bool))
        unequal = jax.tree.map(lambda a, b: (a != b).sum(), plain, fused)
        return plain[0], plain[1].legal, wrong + sum(jax.tree.leaves(unequal))

    start = (states, jax.jit(jax.vmap(game.look))(states).legal, jnp.int32(0))
    return int(jax.jit(lambda start: jax.lax.fori_loop(0, _MOVES, play, start))(start)[2])
