"""The games: rules as pure functions of arrays.

    game = games.make("go", size=9, komi=7.0)
    game = games.make("my_module:MyGame")

`core.Game` is the interface; each game that ships has a file here and a page in docs/games. docs/write-a-game.md shows
how to bring your own.
"""

import importlib
import importlib.metadata
import os
import re
from typing import Any

from tengen import importing, schema
from tengen.errors import OptionError
from tengen.games import contract
from tengen.games.core import Game, Observation, PositionInfo, Symmetry
from tengen.games.targets import Target

__all__ = [
    "Game",
    "Observation",
    "PositionInfo",
    "Symmetry",
    "Target",
    "game_class",
    "is_name",
    "make",
    "names",
    "options_class",
    "register",
    "ships",
]

_CLASSES = {
    "tic_tac_toe": "TicTacToe",
    "connect_four": "ConnectFour",
    "othello": "Othello",
    "hex": "Hex",
    "go": "Go",
    "hironaka": "Hironaka",
    "chess": "Chess",
    "minichess": "Minichess",
}
_PGX = "pgx:"
_GROUP = "tengen.games"
# Games that a Python program has registered, so that the processes it starts know them too.
_ENVIRONMENT = "TENGEN_GAMES"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")

_registered: dict[str, type[Game]] = {}


def names() -> tuple[str, ...]:
    """The games that ship, that were registered, and of installed packages; `pgx:NAME` is a game of the pgx library."""
    return tuple(dict.fromkeys((*_CLASSES, *_registered, *_inherited(), *_installed())))


def is_name(name: str) -> bool:
    """Whether `make` may know the name: of a known game, of pgx, or `package.module:Class`."""
    return name.startswith(_PGX) or importing.is_reference(name) or name in names()


def ships(name: str) -> bool:
    """Whether the game is one of Tengen's own or of pgx, which are known to work."""
    return name in _CLASSES or name.startswith(_PGX)


def register(name: str, cls: type[Game]) -> None:
    """Make a game known under a name in this program and in the processes that it starts.

    Those processes import its class, so it must be in a module that they can import. Raises OptionError if the name is
    taken or malformed, or if `cls` is not a game.
    """
    if not _NAME.fullmatch(name):
        raise OptionError(f"{schema.quote(name)}: expected a name of small letters, digits and _ for a game")
    contract.check_class(cls, name)
    if name in _CLASSES or _registered.get(name, cls) is not cls:
        raise OptionError(f"{name}: there is a game of this name already, expected another name")
    _registered[name] = cls
    reference = f"{cls.__module__}:{cls.__qualname__}"
    if importing.is_reference(reference) and cls.__module__ != "__main__":
        known = {**_inherited(), name: reference}
        os.environ[_ENVIRONMENT] = " ".join(f"{key}={value}" for key, value in known.items())


def game_class(name: str) -> type[Game]:
    """The class that implements the game. Raises OptionError if there is no such game."""
    if name in _CLASSES:
        return getattr(importlib.import_module(f"tengen.games.{name}"), _CLASSES[name])
    if name in _registered:
        return _registered[name]
    if name.startswith(_PGX):
        from tengen.games import pgx_adapter

        pgx_adapter.check_name(name)
        return pgx_adapter.PgxGame
    if importing.is_reference(name):
        return contract.check_class(importing.load(name, "a game"), name)
    if reference := _inherited().get(name):
        return contract.check_class(importing.load(reference, f"the game {name}"), name)
    if entry := _installed().get(name):
        package = f" of the package {entry.dist.name}" if entry.dist else ""
        return contract.check_class(importing.load(entry.value, f"the game {name}{package}"), name)
    hint = schema.unknown("game", name, names())
    raise OptionError(f"{name}: {hint} (pgx:NAME is a game of the pgx library, package.module:Class one of your own)")


def options_class(name: str) -> type:
    """The frozen dataclass that declares the options of a game. Raises OptionError if there is no such game."""
    return game_class(name).Options


def make(name: str, **options: object) -> Game:
    """The game with that name; missing options have the defaults that `tengen games` lists.

    The name is one of `names()`, `pgx:NAME`, or `package.module:Class`; the current directory is importable. Raises
    OptionError, which names every option that is unknown or wrong, and what was expected; or what is wrong with a game
    that does not ship with Tengen, with its file and line.
    """
    cls: Any = game_class(name)
    chosen = schema.from_options(cls.Options, options, name)
    if name.startswith(_PGX):
        return cls(name, chosen)
    return cls(chosen) if name in _CLASSES else contract.make(cls, chosen, name)


def _inherited() -> dict[str, str]:
    """Name -> `module:Class` of games that the program which started this one has registered."""
    pairs = (text.partition("=") for text in os.environ.get(_ENVIRONMENT, "").split())
    return {name: reference for name, _, reference in pairs if importing.is_reference(reference)}


def _installed() -> dict[str, importlib.metadata.EntryPoint]:
    """The games of installed packages, which declare them as entry points. Nothing is imported."""
    found = importlib.metadata.entry_points(group=_GROUP)
    return {entry.name: entry for entry in found if entry.name not in _CLASSES}
