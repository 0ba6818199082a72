"""Whole games recorded on the device; tests look at them afterwards with NumPy."""

from functools import cache
from typing import Any

import jax
import numpy as np

from tengen import games
from tengen.games.batching import quick_jit as jit
from tengen.games.core import Game
from tengen.testing.playing import ANY, alone, record, start
from tengen.testing.playing import PlayedGames as Record

__all__ = ["ANY", "Record", "alone", "jit", "make", "new", "record", "start"]


@cache
def make(name: str, **options: Any) -> Game:
    """The game; the same object for the same options, games of pgx too."""
    return games.make(name, **options)


def new(game: Game) -> Any:
    """One new game."""
    return jax.tree.map(lambda leaf: np.asarray(leaf[0]), start(game))
