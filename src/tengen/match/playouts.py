"""Whole games of random moves, for a batch on the device."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from tengen.games.core import Game
from tengen.games.players import draw


def play_out(game: Game, key: Array, states: Any, legal: Array, done: Array) -> Array:
    """Float32[B, 2]: the results of games ended with random moves from `states` [B, ...].

    `legal` (Bool[B, A]) are the moves there. Games that are over or of no interest are `done` (Bool[B]): their results
    are zeros.
    """

    def running(carry: tuple[Any, ...]) -> Array:
        _, _, _, done, _, moves = carry
        return ~done.all() & (moves < game.max_moves)

    def move(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        key, states, legal, done, results, moves = carry
        key, now = jax.random.split(key)
        states, look = game.step_and_look(states, draw(now, legal), done)
        results = jnp.where((look.over & ~done)[:, None], look.returns, results)
        return key, states, look.legal, done | look.over, results, moves + 1

    nothing = jnp.zeros((len(done), 2), jnp.float32)
    return lax.while_loop(running, move, (key, states, legal, done, nothing, jnp.int32(0)))[4]
