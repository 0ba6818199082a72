"""Configurations of trainers of roles, which have the key `trainer`. Their sections are declared in config/settings.

For your own trainer, derive from `TrainerConfig` and add its settings; see docs/trainers.md. Roles may have other keys
than the names that the game gives them: `host` and `agent` of earlier versions, or the names of another game. These are
renamed before anything is checked, so `--set game.name=othello` keeps the sections of a file for Go.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from typing import Any, Literal

from tengen import nets, schema
from tengen.config.reader import Document, Override, apply
from tengen.config.settings.roles import DQNRoleSettings, EvaluationSection, PlayersSection, RoleSettings
from tengen.config.settings.run import RULES_FIXED, GameSection, GoalSection, RunSection
from tengen.config.settings.train import CheckpointSettings
from tengen.errors import TengenError
from tengen.schema import REQUIRED, setting

ROLES = ("host", "agent")
"""The fields of players 0 and 1. In files, `Game.roles` are their keys."""
_ANY_GAME = ("first", "second")
_PLAYERS = "players"
_Aliases = Mapping[Any, str | None]
"""Other name of a role -> name in the game; None if the game has no such role."""


@dataclass(frozen=True)
class TrainerConfig:
    """All settings of a training of roles."""

    trainer: str = setting(
        REQUIRED,
        "the algorithm",
        pattern=r"[A-Za-z0-9_.:]{1,200}",
        words="the name of a trainer, or package.module:Class for your own",
    )
    reward: Literal["returns", "finished"] = setting(
        REQUIRED,
        "reward at the end: the game's result; or (hironaka) 1 to the host and -1 to the agent if one point is left",
    )
    run: RunSection = setting(REQUIRED, "the run")
    game: GameSection | None = setting(
        REQUIRED, "the game and its rules (null: given by the program)", fixed=RULES_FIXED
    )
    host: RoleSettings | None = setting(REQUIRED, "the role that moves first (null: it does not learn)")
    agent: RoleSettings | None = setting(REQUIRED, "the other role (null: it does not learn)")
    players: PlayersSection = setting(REQUIRED, "players of the roles that do not learn")
    evaluation: EvaluationSection = setting(REQUIRED, "matches that measure the roles during training", change="start")
    checkpoints: CheckpointSettings = setting(REQUIRED, "checkpoints", change="start")
    goal: GoalSection = setting(REQUIRED, "the run ends at whichever comes first; rows are samples", change="now")

    @classmethod
    def key_names(cls, source: Any) -> schema.KeyNames:
        """The keys of the roles, at the top and in `players`, for `schema`; `source` is the data or an instance."""
        data = source if isinstance(source, Mapping) else vars(source)
        names, players = _role_names(data.get("game")), data.get("players")
        if names is None:  # the game is given by the program, or it is wrong, which is reported elsewhere
            names = tuple(map(str, players))[:2] if isinstance(players, Mapping) and players else _ANY_GAME
        if ({field.name for field in fields(cls)} - set(ROLES)) & set(names):  # a player called `run`, say
            return {}
        return {(*above, role): name for role, name in zip_longest(ROLES, names) for above in ((), ("players",))}

    @property
    def roles(self) -> dict[str, RoleSettings | None]:
        """The settings of the roles, by the names that the game gives its players."""
        names = self.key_names(self)
        return {name: getattr(self, role) for role in ROLES if (name := names.get((role,), role)) is not None}

    def check_together(self) -> Iterator[tuple[str, str]]:
        if self.host is None and self.agent is None:
            yield "host", f"expected a section for {' or '.join(self.roles)}, or nobody learns"
        for role, (name, settings) in zip(ROLES, self.roles.items(), strict=False):
            if settings is not None and getattr(self.players, role) is not None:
                yield f"players.{role}", f"expected null, because {name} has a section and learns"
        if self.reward == "finished" and self.game is not None and self.game.name != "hironaka":
            yield "reward", f"expected returns, because {self.game.name} has no points that could be left"
        if self.game is not None:
            yield from self._nets(self.game)

    def _nets(self, section: GameSection) -> Iterator[tuple[str, str]]:

        game = section.make()
        for role in ROLES:
            if (settings := getattr(self, role)) is not None:
                for key, message in nets.problems(settings.net.architecture(), game):
                    yield f"{role}.net.{key}", message


def _role_names(game: Any) -> tuple[str, ...] | None:
    """The roles of the game in a section `game` or its data; None if there is no such game."""
    from tengen import games

    if isinstance(game, GameSection):
        return game.make().roles
    options = dict(game) if isinstance(game, Mapping) else {}
    name = options.pop("name", None)
    for given in (options, {}) if isinstance(name, str) else ():  # wrong options are reported by others
        try:
            return games.make(name, **given).roles
        except (TengenError, TypeError):
            continue
    return None


@dataclass(frozen=True)
class DQNConfig(TrainerConfig):
    trainer: Literal["dqn"] = setting(REQUIRED, "the algorithm")
    host: DQNRoleSettings | None = setting(REQUIRED, "the role that moves first (null: it does not learn)")
    agent: DQNRoleSettings | None = setting(REQUIRED, "the other role (null: it does not learn)")


def rename_roles(cls: type[TrainerConfig], document: Document, overrides: Iterable[Override]) -> list[Override]:
    """Name the roles in the document after the game that it has with these overrides; returns these, renamed too."""
    changed = copy.deepcopy(document.data)
    for override in overrides:
        if override.path[0] == "game":
            apply(override, changed)
    new = _keys_of_roles(cls, changed)
    old = _keys_of_roles(cls, document.data)
    aliases = {**new, **{name: new[role] for role, name in old.items() if name is not None}}
    document.data = _renamed(document.data, aliases)
    if isinstance(players := document.data.get(_PLAYERS), dict):
        document.data[_PLAYERS] = _renamed(players, aliases)
    document.lines = {_with_roles(path, aliases): line for path, line in document.lines.items()}
    document.unread = {_with_roles(path, aliases) for path in document.unread}
    own = {**aliases, **{name: name for name in new.values()}}
    return [replace(override, path=_with_roles(override.path, own)) for override in overrides]


def current_key(config: Any, path: schema.Path) -> schema.Path:
    """The key of a setting of `config` which an earlier version may have written: `host.batch` is now `black.batch`."""
    if not isinstance(config, TrainerConfig):
        return path
    new = _keys_of_roles(type(config), config)
    return _with_roles(path, {**new, **{name: name for name in new.values()}})


def _keys_of_roles(cls: type[TrainerConfig], source: Any) -> dict[str, str | None]:
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


def _with_roles(path: schema.Path, aliases: _Aliases) -> schema.Path:
    place = 1 if path[:1] == (_PLAYERS,) else 0
    return tuple(aliases.get(part) or part if index == place else part for index, part in enumerate(path))
