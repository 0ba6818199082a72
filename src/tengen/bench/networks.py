"""The bare network: one evaluation after the other of a batch of positions, each waiting for the one before."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from tengen import games, nets
from tengen.bench.games import choose
from tengen.games.core import Game, Observation
from tengen.nets import evaluators

Evaluate = Callable[[Any, Observation], nets.Evaluation]


@cache
def game_of(name: str, size: int = 0, observation: str = "") -> Game:
    """A game; `size` and `observation` are options of Go, if given."""
    options: dict[str, Any] = {"size": size} if size else {}
    return games.make(name, **options, **({"observation": observation} if observation else {}))


@cache
def untrained(game: Game, name: str) -> tuple[evaluators.Evaluator, Any]:
    """An untrained network, folded as self-play uses it, and its parameters."""
    key = jax.random.key(0)

    def made(key: jax.Array) -> nets.Network:
        return nets.fold(nets.build(nets.spec(name), game, nnx.Rngs(key)))

    if jax.default_backend() == "cpu":  # see `build_for_device`
        return evaluators.evaluator(made(key))
    graph = nnx.graphdef(nnx.eval_shape(lambda: made(key)))
    return evaluators.Evaluator(graph), jax.jit(lambda key: nnx.state(made(key)))(key)


def sharpened(ask: Evaluate, sharpness: float) -> Evaluate:
    """The evaluator with its logits multiplied: sharp priors make trees deep."""

    def evaluate(state: Any, observation: Observation) -> nets.Evaluation:
        found = ask(state, observation)
        return found._replace(logits=found.logits * sharpness)

    return evaluate


@cache
def positions(game: Game, batch: int, moves: int) -> tuple[Any, Observation]:
    """States and observations after random moves."""

    def play(i: Any, now: Any) -> Any:
        return game.step_and_look(now[0], choose(now[1].legal, i))

    @jax.jit
    def played(keys: jax.Array) -> Any:
        states = jax.vmap(game.init)(keys)
        return jax.lax.fori_loop(0, moves, play, (states, jax.vmap(game.look)(states)))

    states, look = played(jax.random.split(jax.random.key(0), batch))
    return states, look.observation


def evaluating(state: Any, evaluate: Evaluate, observation: Observation, count: int) -> Callable[[], Any]:
    """A program that evaluates the batch `count` times; none can be left out or moved out of the loop."""

    def again(_: Any, now: Any) -> Any:
        planes, total = now
        found = evaluate(state, Observation(planes, observation.scalars))
        # Never true, but the compiler cannot know.
        return planes ^ (found.value > 2)[:, None, None, None], total + found.logits.sum() + found.value.sum()

    loop = jax.jit(lambda planes: jax.lax.fori_loop(0, count, again, (planes, jnp.float32(0))))
    return lambda: loop(observation.planes)
