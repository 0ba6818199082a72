"""The games: rules as pure functions of arrays.

    game = games.make("go", size=9, komi=7.0)

`core.Game` is the contract; each game has a file of its own here and a page in docs/games.
"""

import importlib

from tengen import schema
from tengen.errors import OptionError
from tengen.games.core import Game, Look, Observation, Symmetry

__all__ = ["Game", "Look", "Observation", "Symmetry", "make", "names", "options_class"]

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
    """The games that need no further library. `pgx:NAME` names one of the pgx library."""
    return tuple(_CLASSES)


def _game_class(name: str) -> type[Game]:
    module = "pgx_adapter" if name.startswith(_PGX) else name
    if module not in _CLASSES and module != "pgx_adapter":
        hint = schema.unknown("game", name, names())
        raise OptionError(f"{name}: {hint} (pgx:NAME is a game of the pgx library)")
    class_name = _CLASSES.get(module, "PgxGame")
    return getattr(importlib.import_module(f"tengen.games.{module}"), class_name)


def options_class(name: str) -> type:
    """The frozen dataclass that declares the options of a game; ValueError if there is no such game."""
    return _game_class(name).Options


def make(name: str, **options: object) -> Game:
    """The game of that name; options not given have the defaults that `tengen games` lists.

    ValueError names every option that is unknown or wrong, and what was expected.
    """
    cls = _game_class(name)
    chosen = schema.from_options(cls.Options, options, name)
    return cls(name, chosen) if name.startswith(_PGX) else cls(chosen)
