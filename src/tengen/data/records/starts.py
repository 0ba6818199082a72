"""How a game began, for games that begin at random."""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen.games.core import Game


def start_of(game: Game, seed: np.ndarray | Array) -> str | None:
    """How the game with that `seed` UInt32[2] began, as the game renders it; None for the start that all games have."""
    if not _begins_at_random(game):
        return None
    init = _init(game)
    keys = (jax.random.wrap_key_data(jnp.asarray(seed)), jax.random.key(0))
    start, usual = (game.render(init(key)) for key in keys)
    return None if start == usual else start


@lru_cache(maxsize=64)
def _init(game: Game) -> Any:
    return jax.jit(game.init)


@lru_cache(maxsize=64)
def _begins_at_random(game: Game) -> bool:
    """Whether a new game looks at its key."""
    program = jax.make_jaxpr(game.init)(jax.random.key(0)).jaxpr
    return any(program.invars[0] in equation.invars for equation in program.eqns)
