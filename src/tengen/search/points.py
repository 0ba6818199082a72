"""Points next to winning: a leaf's utility is its value plus a term that grows with its score.

The term is KataGo's dynamic score utility: steepest at a score near the one that the root expects, so that a player who
is certain to win or lose still wants points. Values and scores are also backed up apart from it (`Tree.apart`).
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float32

from tengen.games.core import Game

Score = Float32[Array, "*batch"]
_TOWARDS_ZERO = 0.25  # KataGo's: how far the centre lies from the expected score towards zero


def scale(game: Game) -> float:
    """Points beyond the centre at which the term reaches half of its weight."""
    height, width, _ = game.planes_shape
    return 0.5 * (height * width) ** 0.5


def centre(expected: Score, game: Game) -> Score:
    """Where points count most, given the root's expected score: a little closer to zero."""
    return expected - jnp.clip(_TOWARDS_ZERO * expected, -scale(game), scale(game))


def term(mean: Score, spread: Score, middle: Score, game: Game) -> Score:
    """In (-1, 1): about the mean of `2/pi atan((score - middle) / scale)` over a normal distribution of the score.

    It is exact without spread; near the middle its slope is at most 7 % too steep.
    """
    half = 0.5 * scale(game)
    width = half + jnp.sqrt(half**2 + 2 / math.pi * spread**2)
    return 2 / math.pi * jnp.arctan((mean - middle) / width)
