"""One game of a match as it is kept: a line of JSON, or a record for people."""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from tengen.data.records.records import Ending, Record
from tengen.match.engines.faults import KINDS

if TYPE_CHECKING:
    from tengen.games.core import Game
    from tengen.match.device_match import Match

SCHEMA = 1


@dataclass(frozen=True)
class PlayedGame:
    """A finished game. Games 2i and 2i + 1 began with the same opening, and A moved first in the former."""

    number: int
    actions: tuple[int, ...]  # the opening's included
    opening: int  # how many of them
    seed: tuple[int, ...]  # `game.init` began with the key of these data
    result: float  # for A, from -1 to 1
    ending: Ending = "played out"
    fault: str = ""  # of what kind, if a fault of the loser ended the game
    reason: str = ""  # what happened, in words, if it was not played out
    score: float | None = None  # for player 0, in points
    opinions: Mapping[str, str] = field(default_factory=dict)  # what engines, by "a" and "b", say of the end
    seconds: float = 0.0

    @property
    def a_first(self) -> bool:
        """Whether A was player 0."""
        return self.number % 2 == 0

    def to_line(self) -> str:
        """A line of JSON, without its end."""
        return json.dumps({"schema": SCHEMA, **dataclasses.asdict(self)})

    def record(self, game: "Game", names: tuple[str, str], **rest: Any) -> Record:
        """For people; `names` of A and B."""
        import numpy as np

        from tengen.data.records.moves import start_of

        notes = {"reason": self.reason} if self.reason else {}
        notes |= {f"final score by {names['ab'.index(side)]}": text for side, text in self.opinions.items()}
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


def from_line(line: str) -> PlayedGame:
    """Undo `to_line`. ValueError says what is wrong."""
    data = json.loads(line)
    if not isinstance(data, dict) or data.pop("schema", None) != SCHEMA:
        raise ValueError(f"expected an object of schema {SCHEMA}")
    expected = {f.name for f in dataclasses.fields(PlayedGame)}
    if set(data) != expected:
        odd = sorted(set(data) ^ expected)
        raise ValueError(f"{odd[0]}: {'missing' if odd[0] in expected else 'not expected'}")
    for key in ("number", "opening"):
        _whole(key, [data[key]])
    for key in ("actions", "seed"):
        if not isinstance(data[key], list):
            raise ValueError(f"{key}: expected a list")
        _whole(key, data[key])
    for key in ("result", "seconds", "score"):
        if not (key == "score" and data[key] is None) and not _number(data[key]):
            raise ValueError(f"{key}: expected a number")
    if not -1 <= data["result"] <= 1:
        raise ValueError("result: expected a number from -1 to 1")
    if data["ending"] not in get_args(Ending) or data["fault"] not in ("", *KINDS):
        raise ValueError("ending or fault: expected one that Tengen knows")
    texts = data["opinions"] if isinstance(data["opinions"], dict) else {"": None}
    if not all(isinstance(text, str) for text in (data["reason"], *texts.values())) or not set(texts) <= {"a", "b"}:
        raise ValueError("reason and opinions: expected texts")
    return PlayedGame(**{**data, "actions": tuple(data["actions"]), "seed": tuple(data["seed"])})


def of_match(match: "Match", first_pair: int = 0, facts: Mapping[str, Any] | None = None) -> list[PlayedGame]:
    """The finished games of a match on the device, whose first pair has the number `first_pair`.

    `facts` are `final_facts` of the match, if scores are wanted.
    """
    import numpy as np

    scores = (facts or {}).get("score")
    games = []
    for place in map(int, np.flatnonzero(match.finished)):
        forfeit = bool(match.forfeits[place])
        games.append(
            PlayedGame(
                number=2 * first_pair + place,
                actions=tuple(match.actions[place, : match.length[place]].tolist()),
                opening=match.opening_moves,
                seed=tuple(match.seeds[place].tolist()),
                result=float(match.results[place]),
                ending="forfeit" if forfeit else "played out",
                fault="illegal move" if forfeit else "",
                reason="a move that the rules do not allow" if forfeit else "",
                score=None if scores is None or forfeit else float(scores[place]),
            )
        )
    return games


def _whole(key: str, values: Sequence[Any]) -> None:
    if not all(type(value) is int and 0 <= value < 2**32 for value in values):
        raise ValueError(f"{key}: expected whole numbers of at least 0")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
