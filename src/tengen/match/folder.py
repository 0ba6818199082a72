"""A match in a folder: what is being played, every finished game as a line, and what people and ratings want of it.

match.json      who plays what under which settings; another match cannot go on there
games.jsonl     one line for each finished game, added as it ends; half a line at the end is no game
games.sgf       all of them for people (games.txt for other games than Go)
results.jsonl   the result, for ratings
summary.json    all figures
"""

import contextlib
import datetime
import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tengen import files
from tengen.data.records.records import file_name, save_records
from tengen.errors import TengenError
from tengen.files import lock
from tengen.match import results
from tengen.match.game_record import PlayedGame, from_line
from tengen.match.tally import Tally

if TYPE_CHECKING:
    from tengen.games.core import Game

_ABOUT, _GAMES, _RESULTS, _SUMMARY = "match.json", "games.jsonl", "results.jsonl", "summary.json"


class MatchFolder:
    """The games of one match, here and on disk."""

    def __init__(self, folder: Path, names: tuple[str, str], games: int, played: dict[int, PlayedGame]) -> None:
        self.folder, self.names, self.games = folder, names, games
        self.played = played

    @classmethod
    @contextlib.contextmanager
    def opened(cls, folder: Path, names: tuple[str, str], games: int, about: Mapping[str, Any]) -> Iterator[Self]:
        """The match in a folder, to oneself; `about` is JSON data that must be the same whenever it goes on.

        TengenError if another process uses it, another match is in it, or it is damaged.
        """
        with lock.locked(folder, other="--out"):
            _check(folder / _ABOUT, {"a": names[0], "b": names[1], "games": games, **json.loads(json.dumps(about))})
            yield cls(folder, names, games, _read(folder / _GAMES, games))

    @property
    def missing(self) -> list[int]:
        """The numbers of the games that are still to be played."""
        return [number for number in range(self.games) if number not in self.played]

    @property
    def tally(self) -> Tally:
        return Tally(self.names, self.games, tuple(self.played[number] for number in sorted(self.played)))

    def add(self, *games: PlayedGame) -> None:
        """Note games that have ended; those that are noted already stay as they are."""
        fresh = {game.number: game for game in games if game.number not in self.played}
        lines = "".join(game.to_line() + "\n" for game in fresh.values())
        path = self.folder / _GAMES
        try:
            with io.BufferedWriter(files.open_to_append(path)) as file:
                file.write(lines.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise TengenError(f"{path}: a game cannot be written: {error.strerror or error}") from None
        self.played = {**self.played, **fresh}  # not in place: somebody may be looking at it

    def write(self, game: "Game") -> Path:
        """Everything but games.jsonl anew, from the games so far; where people find the games."""
        path = self.folder / file_name("games", game.name)
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        tally = self.tally
        try:
            if tally.games:
                records = (one.record(game, self.names, date=date, id=f"game-{one.number + 1}") for one in tally.games)
                save_records(path, records)
                results.write(self.folder / _RESULTS, tally.result)
            files.write_bytes(self.folder / _SUMMARY, json.dumps(tally.to_dict(), indent=2).encode() + b"\n")
        except OSError as error:
            raise TengenError(f"{self.folder}: cannot be written to: {error.strerror or error}") from None
        return path


class UnwrittenFolder(MatchFolder):
    """A match of which only the result is wanted: its games are kept in memory, as long as it lasts."""

    def __init__(self, names: tuple[str, str], games: int) -> None:
        super().__init__(Path(), names, games, {})

    def add(self, *games: PlayedGame) -> None:
        """Note games that have ended."""
        self.played = {**{game.number: game for game in games}, **self.played}


def _check(path: Path, about: dict[str, Any]) -> None:
    """Write what the match is; TengenError if it was another one before."""
    try:
        if not path.exists():
            files.write_bytes(path, json.dumps(about, indent=2).encode() + b"\n")
            return
        before = json.loads(files.read_bytes(path))
        if not isinstance(before, dict):
            raise ValueError("expected an object")
    except OSError as error:
        raise TengenError(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise TengenError(f"{path}: cannot be understood ({error}); choose another --out") from None
    old, new = dict(_flat(before)), dict(_flat(about))
    changes = [
        f"{key}: {json.dumps(old.get(key))} -> {json.dumps(new.get(key))}"
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key)
    ]
    if changes:
        advice = f"{path.parent}: another match is in there; keep to its settings to go on, or choose another --out"
        raise TengenError("\n".join([*changes, advice]))


def _flat(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _read(path: Path, games: int) -> dict[int, PlayedGame]:
    """The games in the file, from which half a line at its end is cut off. TengenError names a line that is wrong."""
    try:
        content = files.read_bytes(path)
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):  # the process was killed while it wrote
            os.truncate(path, len(whole))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise TengenError(f"{path}: cannot be read: {error.strerror or error}") from None
    found: dict[int, PlayedGame] = {}
    for number, line in enumerate(whole.split(b"\n")[:-1], 1):
        try:
            game = from_line(line.decode())
            if game.number >= games:
                raise ValueError(f"number: there are {games} games, got {game.number}")
            found.setdefault(game.number, game)
        except (ValueError, RecursionError) as error:
            raise TengenError(
                f"{path}, line {number}: not a game of this match: {error}; mend or remove the line, "
                "or choose another --out"
            ) from None
    return found
