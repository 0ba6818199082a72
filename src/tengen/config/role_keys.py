"""Keys of roles under other names than those of the game: `host` and `agent` of earlier versions, or of another game.

They are renamed before anything is checked, so `--set game.name=othello` keeps the sections of a file for Go.
"""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tengen.config.override import Override, apply
from tengen.config.reader import Document
from tengen.config.trainers import ROLES, TrainerConfig
from tengen.schema import Path

_PLAYERS = "players"
_Aliases = Mapping[Any, str | None]
"""Other name -> name in the game; None if the game has no such role."""


def rename(cls: type[TrainerConfig], document: Document, overrides: Iterable[Override]) -> list[Override]:
    """Name the roles in the document after the game that it has with these overrides; returns these, renamed too."""
    changed = copy.deepcopy(document.data)
    for override in overrides:
        if override.path[0] == "game":
            apply(override, changed)
    new = _names(cls, changed)
    aliases = {**new, **{name: new[role] for role, name in _names(cls, document.data).items() if name is not None}}
    document.data = _renamed(document.data, aliases)
    if isinstance(players := document.data.get(_PLAYERS), dict):
        document.data[_PLAYERS] = _renamed(players, aliases)
    document.lines = {_path(path, aliases): line for path, line in document.lines.items()}
    document.unread = {_path(path, aliases) for path in document.unread}
    own = {**aliases, **{name: name for name in new.values()}}
    return [replace(override, path=_path(override.path, own)) for override in overrides]


def current(config: Any, path: Path) -> Path:
    """The key of a setting of `config` which an earlier version may have written: `host.batch` is now `black.batch`."""
    if not isinstance(config, TrainerConfig):
        return path
    new = _names(type(config), config)
    return _path(path, {**new, **{name: name for name in new.values()}})


def _names(cls: type[TrainerConfig], source: Any) -> dict[str, str | None]:
    names = cls.key_names(source)
    return {role: names.get((role,), role) for role in ROLES}


def _renamed(data: dict[Any, Any], aliases: _Aliases) -> dict[Any, Any]:
    """If a role is there by two names, both stay, and the wrong one is reported as unknown."""
    found = {}
    for key, value in data.items():
        name = aliases.get(key, key)
        if name is None and value is None:  # of a player that a game for one does not have
            continue
        is_taken = name in data and aliases.get(name, name) == name
        found[key if name is None or is_taken else name] = value
    return found


def _path(path: Path, aliases: _Aliases) -> Path:
    place = 1 if path[:1] == (_PLAYERS,) else 0
    return tuple(aliases.get(part) or part if index == place else part for index, part in enumerate(path))
