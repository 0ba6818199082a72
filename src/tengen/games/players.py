"""Players, which choose moves for a batch of positions; here what a player is, and the simplest of them.

A player is a name, a rule and what the rule needs to know (the parameters of a network). Rules are values: two players
whose rules are equal share one compiled program, so the next network of a run costs no new compilation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen.games.core import Game

Rule = Callable[[Any, Array, Any, Array], Array]
"""(params, key, states [B, ...], which Bool[B]) -> Int32[B]: a move in every game of `which`."""


@dataclass(frozen=True, eq=False)
class Player:
    """Chooses moves by a rule. A rule `on_host` is any Python function, others are compiled.

    It gets NumPy arrays, or, if `numpy` is False, JAX arrays on the device where they are.
    """

    name: str
    rule: Rule
    params: Any = ()
    on_host: bool = False
    numpy: bool = True

    def choose(self, key: Array, states: Any, which: Array) -> Array:
        """Int32[B]: moves for the positions `states` [B, ...] in the games `which` (Bool[B]), anything in others."""
        return self.rule(self.params, key, states, which)

    def ask(self, key: Array, states: Any, which: Any) -> Any:
        """`choose` as the host calls it: compiled, or with NumPy arrays for a rule `on_host`."""
        if self.on_host and not self.numpy:
            return self.choose(key, states, jnp.asarray(which)).astype(jnp.int32)
        if self.on_host:
            states, which = jax.device_get((states, which))
            return np.asarray(self.choose(key, states, which), np.int32)
        return _compiled(self.rule, self.params, key, states, jnp.asarray(which))


@partial(jax.jit, static_argnames="rule")
def _compiled(rule: Rule, params: Any, key: Array, states: Any, which: Array) -> Array:
    return rule(params, key, states, which).astype(jnp.int32)


def draw(key: Array, legal: Array) -> Array:
    """Int32[B]: one of the legal moves (Bool[B, A]) each, all equally likely; 0 where nothing is legal."""
    # One random number per game: drawing one per move, as `categorical` does, costs more than the rules of small games.
    count = legal.sum(1)
    index = jnp.floor(jax.random.uniform(key, count.shape) * count).astype(jnp.int32)
    index = jnp.minimum(index, count - 1)  # rounding could reach `count`
    return jnp.argmax(jnp.cumsum(legal, 1) > index[:, None], 1).astype(jnp.int32)


@dataclass(frozen=True)
class Random:
    """Every legal move is equally likely."""

    game: Game

    def __call__(self, params: Any, key: Array, states: Any, which: Array) -> Array:
        return draw(key, jax.vmap(self.game.legal_actions)(states))


@dataclass(frozen=True)
class First:
    """Always the legal move with the lowest number, or with the highest if `last`."""

    game: Game
    last: bool = False

    def __call__(self, params: Any, key: Array, states: Any, which: Array) -> Array:
        legal = jax.vmap(self.game.legal_actions)(states)
        if self.last:
            return (self.game.num_actions - 1 - jnp.argmax(legal[:, ::-1], 1)).astype(jnp.int32)
        return jnp.argmax(legal, 1).astype(jnp.int32)
