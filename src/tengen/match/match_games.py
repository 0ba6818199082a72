"""The finished games of a match: as they are kept, in memory and in a folder, and what they say about the players.

match.json      who plays what under which settings; another match cannot go on there
games.jsonl     one line for each finished game, added as it ends; an incomplete line at the end is cut off
games.sgf       all of them for people (games.txt for other games than Go)
results.jsonl   the result, for ratings
summary.json    all figures
"""

import collections
import contextlib
import dataclasses
import datetime
import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from tengen import files, schema
from tengen.config.settings.search import SearchSettings
from tengen.data.records.moves import start_of
from tengen.data.records.records import Ending, Record, file_name, save_records
from tengen.errors import OptionError, TengenError
from tengen.files import lock
from tengen.games.core import Game
from tengen.match import results
from tengen.match.engines.engine import points
from tengen.match.engines.process import KINDS
from tengen.match.results import MatchResult
from tengen.schema import REQUIRED, from_json, setting

_WORD = 2**32 - 1
_CLOSE = 0.01  # points: final scores that differ by less are equal
ABOUT, _GAMES, SUMMARY = "match.json", "games.jsonl", "summary.json"


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
        return self.number % 2 == 0

    def to_line(self) -> str:
        opinions = {side: text for side, text in vars(self.opinions).items() if text is not None}
        return json.dumps({"schema": 1, **dataclasses.asdict(self), "opinions": opinions})

    @staticmethod
    def from_line(line: str | bytes) -> "PlayedGame":
        """Undoes `to_line`. ValueError if that is not possible."""
        return from_json(PlayedGame, line, strict=True, version=1)

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


class MatchGames:
    """The games of one match, in memory; a `MatchFolder` also keeps them on disk."""

    def __init__(self, names: tuple[str, str], games: int, played: Mapping[int, PlayedGame] | None = None) -> None:
        """`games` are those of the whole match, `played` those that are finished, by number."""
        self.names, self.games = names, games
        self.played: Mapping[int, PlayedGame] = played or {}

    def add(self, *games: PlayedGame) -> None:
        """Adds finished games; those that are there already stay as they are."""
        # Not in place: another thread may be reading it.
        self.played = {**{game.number: game for game in games}, **self.played}

    @property
    def missing(self) -> list[int]:
        return [number for number in range(self.games) if number not in self.played]

    @property
    def finished(self) -> list[PlayedGame]:
        return [self.played[number] for number in sorted(self.played)]

    @property
    def outcomes(self) -> tuple[np.ndarray, np.ndarray]:
        """Float64[G]: the results for A, 0 for games that are missing; Bool[G]: which games are finished."""
        values, there = np.zeros(self.games), np.zeros(self.games, bool)
        for number, game in self.played.items():
            values[number], there[number] = game.result, True
        return values, there

    @property
    def result(self) -> MatchResult:
        return MatchResult.of_games(*self.names, *self.outcomes)

    def by_seat(self) -> dict[str, MatchResult]:
        """The result of the games in which A moved first, and of those in which it moved second."""
        values, there = self.outcomes
        first = np.arange(self.games) % 2 == 0
        seats = {"first": there & first, "second": there & ~first}
        return {seat: MatchResult.of_games(*self.names, values, which) for seat, which in seats.items()}

    @property
    def mean_length(self) -> float:
        """Moves per game, the opening's included; there must be a game."""
        return float(np.mean([len(game.actions) for game in self.played.values()]))

    @property
    def endings(self) -> dict[str, int]:
        return dict(collections.Counter(game.ending for game in self.finished).most_common())

    def faults(self, side: int) -> list[PlayedGame]:
        """The games that A (0) or B (1) lost by a fault."""
        return [game for game in self.finished if game.fault and (game.result < 0) == (side == 0)]

    def other_counts(self, side: int) -> tuple[int, int, int]:
        """How many final scores A (0) or B (1) gave, how many of them differ from ours, and name another winner."""
        there = differ = winner = 0
        for game in self.played.values():
            theirs = points((game.opinions.a, game.opinions.b)[side] or "")
            if theirs is not None and game.score is not None:
                there += 1
                differ += abs(theirs - game.score) > _CLOSE
                winner += np.sign(theirs) != np.sign(game.score)
        return there, differ, int(winner)

    def records(self, game: Game, id: str = "game-{}", **rest: Any) -> Iterator[Record]:
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        for one in self.finished:
            yield one.record(game, self.names, date=date, id=id.format(one.number + 1), **rest)

    def lines(self) -> list[str]:
        lines = [str(self.result)]
        if not self.played:
            return lines
        for seat, result in self.by_seat().items():
            if result.games:
                lines.append(f"  moving {seat}: {100 * result.share:.1f} % of {result.games}, {result.counts}")
        endings = ", ".join(f"{count} {ending}" for ending, count in self.endings.items())
        lines.append(f"  {self.mean_length:.0f} moves a game; {endings}")
        for side, name in enumerate(self.names):
            faults = self.faults(side)
            for kind, count in collections.Counter(game.fault for game in faults).most_common():
                example = next(game for game in faults if game.fault == kind)
                lines.append(f"  {name} lost {count} by {kind}: game {example.number + 1}: {example.reason}")
            there, differ, winner = self.other_counts(side)
            if differ:
                lines.append(
                    f"  {name} counts {differ} of {there} final positions differently, and names another winner in "
                    f"{winner}; our rules count"
                )
        return lines

    def to_dict(self) -> dict[str, Any]:
        result = self.result
        about: dict[str, Any] = {"a": result.a, "b": result.b, "games": result.games, "of": self.games}
        if not self.played:
            return about
        low, high = result.interval
        faults = {name: self.faults(side) for side, name in enumerate(self.names)}
        counts = {name: self.other_counts(side) for side, name in enumerate(self.names)}
        return about | {
            **result.tally,
            "share": result.share,
            "share_low": low,
            "share_high": high,
            **result.figures(),
            "by_seat": {seat: found.tally for seat, found in self.by_seat().items()},
            "mean_length": self.mean_length,
            "endings": self.endings,
            "faults": {
                name: [{"game": game.number + 1, "fault": game.fault, "reason": game.reason} for game in games]
                for name, games in faults.items()
                if games
            },
            "other_counts": {
                name: dict(zip(("counted", "different", "other_winner"), found, strict=True))
                for name, found in counts.items()
                if found[0]
            },
        }


class MatchFolder(MatchGames):
    def __init__(self, folder: Path, names: tuple[str, str], games: int, played: Mapping[int, PlayedGame]) -> None:
        super().__init__(names, games, played)
        self.folder = folder

    @classmethod
    @contextlib.contextmanager
    def opened(cls, folder: Path, names: tuple[str, str], games: int, about: Mapping[str, Any]) -> Iterator[Self]:
        """Opens and locks the match in a folder; `about` is JSON data that must be the same whenever it goes on.

        TengenError if another process uses the folder, another match is in it, or it is damaged.
        """
        with lock.locked(folder, other="--out"):
            _check(folder / ABOUT, {"a": names[0], "b": names[1], "games": games, **json.loads(json.dumps(about))})
            yield cls(folder, names, games, _read(folder / _GAMES, games))

    def add(self, *games: PlayedGame) -> None:
        """Writes finished games to disk and adds them; those that are there already stay as they are."""
        lines = "".join(game.to_line() + "\n" for game in games if game.number not in self.played)
        path = self.folder / _GAMES
        with files.writing(path), io.BufferedWriter(files.open_to_append(path)) as file:
            file.write(lines.encode())
            file.flush()
            os.fsync(file.fileno())
        super().add(*games)

    def write(self, game: Game) -> Path:
        """Rewrites all files except games.jsonl; returns the path of the games for people."""
        path = self.folder / file_name("games", game.name)
        with files.writing(self.folder):
            if self.played:
                save_records(path, self.records(game))
                results.write(self.folder / results.FILE, self.result)
            schema.write_json(self.folder / SUMMARY, self.to_dict(), indent=2)
        return path


def _check(path: Path, about: dict[str, Any]) -> None:
    """Writes what the match is; TengenError if another match is in the folder."""
    if not path.exists():
        schema.write_json(path, about, indent=2)
        return
    try:
        before = schema.read_json(dict[str, Any], path)
    except OptionError as error:
        raise TengenError(f"{error}; choose another --out") from None
    for key in ("search", "search_of_b"):
        if isinstance(search := before.get(key), dict):
            before[key] = schema.before(SearchSettings) | search
    old, new = dict(schema.leaves(before)), dict(schema.leaves(about))
    changes = [
        f"{key}: {json.dumps(old.get(key))} -> {json.dumps(new.get(key))}"
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key)
    ]
    if changes:
        advice = f"{path.parent}: another match is in there; keep to its settings to go on, or choose another --out"
        raise TengenError("\n".join([*changes, advice]))


def _read(path: Path, games: int) -> dict[int, PlayedGame]:
    """The games in the file. Cuts off an incomplete line at its end; TengenError names a line that is wrong."""
    if not path.exists():
        return {}
    content = files.read_bytes(path)
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):  # the process was killed while it wrote
        with files.writing(path):
            os.truncate(path, len(whole))
    found: dict[int, PlayedGame] = {}
    for number, line in enumerate(whole.split(b"\n")[:-1], 1):
        try:
            game = PlayedGame.from_line(line)
            if game.number >= games:
                raise ValueError(f"number: there are {games} games, got {game.number}")
            found.setdefault(game.number, game)
        except ValueError as error:
            raise TengenError(
                f"{path}, line {number}: not a game of this match: {error}; correct or remove the line, "
                "or choose another --out"
            ) from None
    return found
