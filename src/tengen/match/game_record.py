"""One game of a match as it is kept: a line of JSON, or a record for people."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from tengen.data.records.moves import start_of
from tengen.data.records.records import Ending, Record
from tengen.games.core import Game
from tengen.match.engines.faults import KINDS
from tengen.schema import REQUIRED, from_data, setting

_WORD = 2**32 - 1


@dataclass(frozen=True)
class EngineOpinions:
    """The final score of a game by the engines that played it."""

    a: str | None = setting(None, "by A, as B+3.5")
    b: str | None = setting(None, "by B")


@dataclass(frozen=True)
class PlayedGame:
    """A finished game. Games 2i and 2i + 1 began with the same opening, and A moved first in the former."""

    number: int = setting(REQUIRED, "from 0", low=0, high=_WORD)
    actions: tuple[int, ...] = setting(REQUIRED, "all moves, the opening's included", low=0, high=_WORD)
    opening: int = setting(REQUIRED, "how many of them are the opening", low=0, high=_WORD)
    seed: tuple[int, ...] = setting(REQUIRED, "`game.init` began with the key of these data", low=0, high=_WORD)
    result: float = setting(REQUIRED, "for A", low=-1, high=1)
    ending: Ending = setting("played out", "how the game ended")
    fault: str = setting("", "what the loser did wrong, if that ended the game", choices=("", *KINDS))
    reason: str = setting("", "in words, if the game was not played out")
    score: float | None = setting(None, "for player 0, in points")
    opinions: EngineOpinions = setting(EngineOpinions(), "the final score by the engines")
    seconds: float = setting(0.0, "how long the game took")

    @property
    def a_first(self) -> bool:
        """Whether A was player 0."""
        return self.number % 2 == 0

    def to_line(self) -> str:
        """A line of JSON, without its end."""
        opinions = {side: text for side, text in vars(self.opinions).items() if text is not None}
        return json.dumps({"schema": 1, **dataclasses.asdict(self), "opinions": opinions})

    @staticmethod
    def from_line(line: str | bytes) -> "PlayedGame":
        """Undoes `to_line`. ValueError (or RecursionError) if that is not possible."""
        data = json.loads(line)
        if not isinstance(data, dict) or data.pop("schema", None) != 1:
            raise ValueError("expected an object of schema 1")
        return from_data(PlayedGame, data, strict=True)

    def record(self, game: Game, names: tuple[str, str], **rest: Any) -> Record:
        """A record for people; `names` are those of A and B."""
        notes = {"reason": self.reason} if self.reason else {}
        opinions = zip(names, (self.opinions.a, self.opinions.b), strict=True)
        notes |= {f"final score by {name}": text for name, text in opinions if text is not None}
        about: dict[str, Any] = {
            "players": names if self.a_first else names[::-1],
            "result": self.result if self.a_first else -self.result,
            "score": self.score if self.ending == "played out" else None,
            "ending": self.ending,
            "opening": self.opening,
            "start": start_of(game, np.asarray(self.seed, np.uint32)),
            "notes": notes,
        }
        return Record.of(game, self.actions, **about, **rest)
