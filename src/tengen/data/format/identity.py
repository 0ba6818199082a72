"""Which game rows are of. Rows of another game, or of the same under other rules, must not be mixed in."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tengen.errors import OptionError

if TYPE_CHECKING:
    from tengen.games.core import Game


@dataclass(frozen=True)
class GameIdentity:
    """A game, the version of its rules in Tengen, and its options in plain JSON values."""

    name: str
    version: int
    options: Mapping[str, Any]

    @staticmethod
    def of(game: "Game[Any]") -> "GameIdentity":
        """The identity of a game that was made."""
        return GameIdentity(game.name, game.version, plain_options(game))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"game": self.name, "version": self.version, "options": dict(self.options)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> "GameIdentity":
        """Undo `to_dict`; other keys are left alone. OptionError says what is wrong."""
        name, version, options = (data.get(key) for key in ("game", "version", "options"))
        if not isinstance(name, str):
            raise OptionError("game: expected the name of a game")
        if not isinstance(version, int) or isinstance(version, bool):
            raise OptionError("version: expected a whole number")
        if not isinstance(options, dict):
            raise OptionError("options: expected a mapping")
        return GameIdentity(name, version, options)

    def difference(self, other: "GameIdentity") -> str:
        """How `other` is not this game, in words; empty if it is."""
        if self.name != other.name:
            return f"expected the game {self.name}, got {other.name}"
        if self.version != other.version:
            return f"expected version {self.version} of the rules of {self.name}, got {other.version}"
        keys = [key for key in {**self.options, **other.options} if self._shown(key) != other._shown(key)]
        words = [f"{key}: expected {self._shown(key)}, got {other._shown(key)}" for key in keys]
        return f"{self.name}: {'; '.join(words)}" if words else ""

    def _shown(self, key: str) -> str:
        return json.dumps(self.options[key], sort_keys=True) if key in self.options else "none"


def plain_options(game: "Game[Any]") -> dict[str, Any]:
    """The options of a game as JSON gives them back: tuples have become lists."""
    return json.loads(json.dumps(dataclasses.asdict(game.options)))
