"""Which game rows belong to. Rows of another game, or of other rules, must not be mixed in."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tengen import schema

if TYPE_CHECKING:
    from tengen.games.core import Game


@dataclass(frozen=True)
class _IdentityJson:
    game: str
    version: int
    options: dict[str, Any]


@dataclass(frozen=True)
class GameIdentity:
    """A game, the version of its rules in Tengen, and its options in plain JSON values.

    With `partial`, rows may have been played by any rules: only the name and the options that are given count.
    """

    name: str
    version: int
    options: Mapping[str, Any]
    partial: bool = False

    @staticmethod
    def of(game: "Game[Any]") -> "GameIdentity":
        return GameIdentity(game.name, game.version, plain_options(game))

    def to_dict(self) -> dict[str, Any]:
        return {"game": self.name, "version": self.version, "options": dict(self.options)}

    @staticmethod
    def from_dict(data: Mapping[str, Any], what: str = "") -> "GameIdentity":
        """Undo `to_dict`; other keys are ignored. Raises OptionError naming `what`."""
        found = schema.from_data(_IdentityJson, data, what)
        return GameIdentity(found.game, found.version, found.options)

    def difference(self, other: "GameIdentity") -> str:
        """How `other` differs from this game, in words; empty if it does not."""
        if self.name != other.name:
            return f"expected the game {self.name}, got {other.name}"
        if self.version != other.version and not other.partial:
            return f"expected version {self.version} of the rules of {self.name}, got {other.version}"
        compared = other.options if other.partial else {**self.options, **other.options}
        keys = [key for key in compared if self._shown(key) != other._shown(key)]
        words = [f"{key}: expected {self._shown(key)}, got {other._shown(key)}" for key in keys]
        return f"{self.name}: {'; '.join(words)}" if words else ""

    def _shown(self, key: str) -> str:
        options = self.options if key in self.options else _before(self.name)
        return json.dumps(options[key], sort_keys=True) if key in options else "none"


def _before(name: str) -> dict[str, Any]:
    """The values of options of a game that ships which apply to data from before those options existed."""
    from tengen import games  # here, because it needs JAX

    return schema.before(games.options_class(name)) if games.ships(name) else {}


def plain_options(game: "Game[Any]") -> dict[str, Any]:
    """The options of a game in JSON values: tuples have become lists."""
    return json.loads(json.dumps(dataclasses.asdict(game.options)))
