"""Whole games recorded on the device; tests look at them afterwards with NumPy."""

from functools import cache
from typing import Any

from tengen import games
from tengen.games.batching import quick_jit as jit
from tengen.games.core import Game
from tengen.testing.recording import ANY, alone, new, record, start
from tengen.testing.recording import PlayedGames as Record

__all__ = ["ANY", "Record", "alone", "jit", "make", "new", "record", "start"]

_GAMES: dict[tuple[str, Any], Game] = {}


@cache
def make(name: str, **options: Any) -> Game:
    """The game; the same object for the same options, so that what was compiled for it is used again."""
    game = games.make(name, **options)
    return _GAMES.setdefault((name, game.options), game)
