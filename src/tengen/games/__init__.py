"""The games: rules as pure functions of arrays.

    game = games.make("go", size=9, komi=7.0)

`core.Game` is the interface; each game has a file here and a page in docs/games.
"""

import importlib
from typing import Any

from tengen import schema
from tengen.errors import OptionError
from tengen.games.core import Game, Observation, PositionInfo, Symmetry

__all__ = ["Game", "Observation", "PositionInfo", "Symmetry", "game_class", "make", "names", "options_class"]

_CLASSES = {
    "tic_tac_toe": "TicTacToe",
    "connect_four": "ConnectFour",
    "othello": "Othello",
    "hex": "Hex",
    "go": "Go",
    "hironaka": "Hironaka",
}
_PGX = "pgx:"


def names() -> tuple[str, ...]:
    """The games that need no further library; `pgx:NAME` is a game of the pgx library."""
    return tuple(_CLASSES)


def game_class(name: str) -> type[Game]:
    """The class that implements the game. Raises OptionError if there is no such game."""
    if name.startswith(_PGX):
        from tengen.games import pgx_adapter

        pgx_adapter.check_name(name)
        return pgx_adapter.PgxGame
    if name not in _CLASSES:
        hint = schema.unknown("game", name, names())
        raise OptionError(f"{name}: {hint} (pgx:NAME is a game of the pgx library)")
    return getattr(importlib.import_module(f"tengen.games.{name}"), _CLASSES[name])


def options_class(name: str) -> type:
    """The frozen dataclass that declares the options of a game. Raises OptionError if there is no such game."""
    return game_class(name).Options


def make(name: str, **options: object) -> Game:
    """The game with that name; missing options have the defaults that `tengen games` lists.

    Raises OptionError, which names every option that is unknown or wrong, and what was expected.
    """
    cls: Any = game_class(name)
    chosen = schema.from_options(cls.Options, options, name)
    return cls(name, chosen) if name.startswith(_PGX) else cls(chosen)
