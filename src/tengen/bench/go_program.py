"""Go's GPU program against the plain version: the same results on random games, and the time of both."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from tengen import games
from tengen.bench.figures import Figure
from tengen.bench.games import choose
from tengen.bench.timing import Timing, in_turn
from tengen.games.core import Game

SETTINGS = (
    {"ko": "simple", "suicide": False},
    {"ko": "positional", "suicide": False},
    {"ko": "situational", "suicide": True},
)
_BOARDS = ((9, 4096), (19, 512))  # size, and games at once
_STEPS = 100  # of one measurement
_COMPARED = 64  # games whose results are compared
_MOVES = 150  # of each of them


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
        """Of one step of the batch."""
        return timing.median / _STEPS * 1e6

    def figures(self) -> list[Figure]:
        rules = f"{self.setting['ko']} ko{', suicide' if self.setting['suicide'] else ''}"
        where = f"go {self.size}x{self.size}, {rules}, {self.batch} games"
        times = {"plain version": self.plain, "GPU program": self.program, "GPU program on tree nodes": self.nodes}
        return [Figure(f"{name}, {where}", self.microseconds(time), "us", time.noise) for name, time in times.items()]


def measure(repeats: int) -> Iterator[GoTimes]:
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
                "plain": _playing(plain, states, look),
                "program": _playing(game.step_and_look, states, look),
                "nodes": _playing(game.step_and_look, nodes, look),
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


def _playing(step: Callable[..., Any], states: Any, look: Any) -> Callable[[], Any]:
    body = lambda i, now: step(now[0], choose(now[1].legal, i))  # noqa: E731
    loop = jax.jit(lambda now: jax.lax.fori_loop(0, _STEPS, body, now))
    return lambda: loop((states, look))
