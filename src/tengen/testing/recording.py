"""Whole games played on the device and recorded, to be looked at with NumPy afterwards.

One program per game and batch is compiled and used again, because compiling is what takes the time.
"""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tengen.games.batching import quick_jit
from tengen.games.core import Game, PositionInfo

ANY = -1  # in place of an action: draw one

Values = Any  # NumPy arrays in a record, JAX arrays where one is made


class PlayedGames(NamedTuple):
    """Arrays over T moments of B games; moment 0 is the start."""

    states: Any  # [T, B, ...] each leaf
    actions: Values  # Int32[T, B]: applied at that moment, also to games that are over
    legal: Values  # Bool[T, B, A]
    planes: Values  # Bool[T, B, H, W, C]
    scalars: Values  # Float32[T, B, S]
    to_play: Values  # Int32[T, B]
    over: Values  # Bool[T, B]
    returns: Values  # Float32[T, B, 2]
    targets: dict[str, Values]  # [T, B, ...] each: the final targets, as if the game ended there

    def state(self, moment: int, game: int) -> Any:
        return jax.tree.map(lambda leaf: leaf[moment, game], self.states)

    def length(self, game: int) -> int:
        """How many moves that game lasted (all that were recorded if it did not end)."""
        return int(self.over[:, game].argmax()) if self.over[:, game].any() else len(self.over) - 1


@cache
def alone(game: Game) -> Any:
    """A program for ONE game: (state, action) to (state, look, to_play, targets) after that action.

    `look` is made from its parts here, whereas records take it from the game: tests compare the two.
    """

    def after(state: Any, action: Any) -> tuple[Any, ...]:
        state = game.step(state, action)
        parts = game.legal_actions(state), game.observe(state), game.is_over(state), game.returns(state)
        return state, PositionInfo(*parts), game.to_play(state), game.final_targets(state)

    return quick_jit(after)


@cache
def _init(game: Game) -> Any:
    return quick_jit(jax.vmap(game.init))


@cache
def _play(game: Game) -> Any:
    def moment(states: Any, given: tuple[Any, Any, Any]) -> tuple[Any, PlayedGames]:
        key, wanted, liking = given
        legal, seen, over, returns, _ = jax.vmap(game.look)(states)
        # A finished game gets any action at all: it must not care.
        weights = jnp.where(legal | over[:, None], liking, -jnp.inf)
        drawn = jax.random.categorical(key, weights, axis=-1).astype(jnp.int32)
        actions = jnp.where(wanted == ANY, drawn, wanted)
        to_play, targets = jax.vmap(game.to_play)(states), jax.vmap(game.final_targets)(states)
        now = PlayedGames(states, actions, legal, *seen, to_play, over, returns, targets)
        return jax.vmap(game.step)(states, actions), now

    def run(states: Any, seed: Any, wanted: Any, liking: Any) -> PlayedGames:
        keys = jax.random.split(jax.random.key(seed), len(wanted))
        every = jnp.broadcast_to(liking, (len(wanted), *liking.shape))
        return jax.lax.scan(moment, states, (keys, wanted, every))[1]

    return quick_jit(run)


def start(game: Game, batch: int = 64, seed: int = 0) -> Any:
    return _init(game)(jax.random.split(jax.random.key(seed), batch))


def record(
    game: Game,
    states: Any,
    seed: int = 0,
    actions: np.ndarray | None = None,
    moments: int | None = None,
    liking: np.ndarray | None = None,
) -> PlayedGames:
    """Games from `states`: random legal moves, or `actions` Int32[T, B] where they are not ANY.

    `liking` Float32[A] are the logits of the draw. Without `moments`, until two after the longest possible game.
    """
    batch = jax.tree.leaves(states)[0].shape[0]
    moments = len(actions) if actions is not None else moments or game.max_moves + 2
    wanted = np.full((moments, batch), ANY, np.int32) if actions is None else actions.astype(np.int32)
    liking = np.zeros(game.num_actions, np.float32) if liking is None else liking.astype(np.float32)
    return jax.tree.map(np.asarray, _play(game)(states, seed, wanted, liking))
