"""A match in a folder.

match.json      who plays what under which settings; another match cannot go on there
games.jsonl     one line for each finished game, added as it ends; an incomplete line at the end is cut off
games.sgf       all of them for people (games.txt for other games than Go)
results.jsonl   the result, for ratings
summary.json    all figures
"""

import contextlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from tengen import files, schema
from tengen.data.records.records import file_name, save_records
from tengen.errors import OptionError, TengenError
from tengen.files import lock
from tengen.games.core import Game
from tengen.match import results
from tengen.match.game_record import PlayedGame
from tengen.match.match_games import MatchGames

ABOUT, _GAMES, SUMMARY = "match.json", "games.jsonl", "summary.json"


class MatchFolder(MatchGames):
    """The games of one match, in memory and on disk."""

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
        except (ValueError, RecursionError) as error:
            raise TengenError(
                f"{path}, line {number}: not a game of this match: {error}; correct or remove the line, "
                "or choose another --out"
            ) from None
    return found
