"""Game records, for people and for other programs.

A file holds one game or many: SGF for Go, PGN for chess, plain text (`text`) for every game. Files are recognised by
their content, not by their names; files that are written are called `.sgf`, `.pgn` or `.txt`.
"""

import codecs
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from tengen import files, schema
from tengen.data.format.identity import plain_options
from tengen.errors import TengenError
from tengen.words import printable

if TYPE_CHECKING:
    from tengen.games.core import Game

Ending = Literal["played out", "resigned", "time", "forfeit", "unknown"]
FIRST_LINE = "tengen record 1"
"""The first line of each record."""
_MARK = FIRST_LINE.rpartition(" ")[0].encode()  # of every version
_SGF = re.compile(rb"\(\s*;")
_PGN = re.compile(rb'\[\s*[A-Za-z]\w*\s+"|1\s*\.')
RecordFormat = Literal["sgf", "pgn", "txt"]
MOST_VARIATIONS = 200
"""Lines of a game besides its main line that are read."""
ENDINGS = {"go": "sgf", "chess": "pgn"}
"""The format in which records of a game are written, if it is not plain text."""


@dataclass(frozen=True)
class Annotation:
    """Comments on a move of a record, and better moves."""

    comment: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)  # SGF: such as BM, with their values
    instead: tuple[int, ...] = ()  # actions that should have been played: a variation
    instead_comment: str = ""
    sign: str = ""  # PGN: such as ??


class RecordError(TengenError):
    """Text that is no record of a game: where, and why."""


@dataclass(frozen=True)
class Record:
    """One game. Players are 0 (moves first, Black in Go) and 1."""

    game: str
    options: Mapping[str, Any]  # of the game as it was played: komi drawn for this game is among them
    actions: tuple[int, ...]
    values: tuple[float | None, ...] = ()  # the search's, for the player who moved; None where there was no search
    players: tuple[str, str] = ("", "")
    result: float | None = None  # for player 0, from -1 to 1; None if the game has none
    score: float | None = None  # for player 0, in points
    ending: Ending = "played out"
    network: str = ""
    date: str = ""  # as 2025-01-31
    id: str = ""  # of the game
    opening: int = 0  # moves at the beginning that the players did not choose
    start: str | None = None  # as `Game.render` prints it; None for the usual start
    notes: Mapping[str, str] = field(default_factory=dict)  # anything else

    def __post_init__(self) -> None:
        if not self.values:
            object.__setattr__(self, "values", (None,) * len(self.actions))
        if len(self.values) != len(self.actions):
            raise ValueError(f"{len(self.actions)} actions, but {len(self.values)} values")
        if self.ending not in get_args(Ending):
            raise ValueError(f"ending: expected one of {', '.join(get_args(Ending))}, got {self.ending!r}")

    @staticmethod
    def of(game: "Game[Any]", actions: Iterable[int], *, komi: float | None = None, **rest: Any) -> "Record":
        """A record of `game`; `komi` if this game was played with another than the game's."""
        options = plain_options(game) | ({} if komi is None else {"komi": float(komi)})
        return Record(game.name, options, tuple(int(action) for action in actions), **rest)


def load_records(path: Path) -> list[Record]:
    """The games in a file, SGF, PGN or plain text. RecordError names the file."""
    try:
        return without_errors(read_each(path))
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error


def without_errors(found: Iterable[Record | RecordError]) -> list[Record]:
    """All games, at least one. RecordError says which cannot be read, and why."""
    games = list(found)
    for number, each in enumerate(games, 1):
        if isinstance(each, RecordError):
            raise RecordError(f"game {number}: {each}" if len(games) > 1 else str(each)) from each
    if not games:
        raise RecordError("it contains no game")
    return cast(list[Record], games)


def load_variations(path: Path, number: int) -> list[tuple[int, ...]]:
    """The lines besides the main line of a game in a file, counted from 0: actions from the start of the game.

    Plain text has none. RecordError as for `load_records`.
    """
    from tengen.data.records import pgn, sgf

    content = files.read_bytes(path)
    readers = {"sgf": sgf.variations, "pgn": pgn.variations}
    reader = readers.get(record_format(content))
    return reader(content, number) if reader else []


def load_comments(path: Path, number: int, own: bool = False) -> dict[int, str]:
    """The comments on the moves of a game in a file, moves and games counted from 0; `own`: those of reviews as well.

    Plain text has none. RecordError as for `load_records`.
    """
    from tengen.data.records import pgn, sgf

    content = files.read_bytes(path)
    match record_format(content):
        case "sgf":
            return sgf.comments(content, number, own)
        case "pgn":
            return pgn.comments(content, number)
        case "txt":
            return {}


def read_each(path: Path) -> Iterator[Record | RecordError]:
    """The games in a file one by one, with an error in the place of each that cannot be read. Raises FileError.

    A file called `.sgfs` has a game on each line, as KataGo writes them.
    """
    from tengen.data.records import pgn, sgf, text

    content = files.read_bytes(path)
    try:
        kind = record_format(content)
        reader = {"sgf": sgf.read_each, "pgn": pgn.read_each, "txt": text.read_each}[kind]
        for part in content.splitlines() if kind == "sgf" and path.suffix.lower() == ".sgfs" else [content]:
            yield from reader(part)
    except RecordError as error:
        yield error


def without_mark(content: bytes) -> bytes:
    """The content of a file in UTF-8, or as it is, without the byte-order marks of some editors on Windows."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        content = content.decode("utf-16", "replace").encode()
    return content.removeprefix(codecs.BOM_UTF8)


def record_format(content: bytes) -> RecordFormat:
    """The format of the content of a file; `txt` is a plain text record. RecordError if it is not a record."""
    content = without_mark(content)
    start = content.lstrip()
    if _PGN.match(start):
        return "pgn"
    while start.startswith(b"#"):  # comments of a plain text record
        start = start.partition(b"\n")[2].lstrip()
    if start.startswith(_MARK):
        return "txt"
    if _SGF.search(content):
        return "sgf"
    what = "neither SGF, which begins with (;, nor PGN, nor a record of Tengen, which begins with the line"
    raise RecordError(f"{'an empty file' if not start else 'the file'} is {what} '{FIRST_LINE}'")


def file_name(stem: str, game: str) -> str:
    return f"{stem}.{ENDINGS.get(game, 'txt')}"


def save_records(path: Path, records: Iterable[Record]) -> None:
    """Write games to a file that is complete or absent: SGF or PGN if its name ends so. Raises FileError."""
    content = write_records(records, path.suffix.lower().removeprefix(".")).encode()
    files.make_folder(path.parent)
    files.write_bytes(path, content)


def write_records(records: Iterable[Record], kind: str) -> str:
    """The games as SGF or PGN, or as plain text if the kind is another."""
    from tengen.data.records import pgn, sgf, text

    return {"sgf": sgf.write, "pgn": pgn.write}.get(kind, text.write)(records)


def header(record: Record) -> list[str]:
    """All but the moves: FIRST_LINE, then lines `key: value`. Unknown values have no line."""
    lines = [
        FIRST_LINE,
        f"game: {record.game}",
        f"options: {json.dumps(dict(record.options))}",
        *(f"player {number}: {one_line(name)}" for number, name in enumerate(record.players) if name),
    ]
    for key, value in (("network", record.network), ("date", record.date), ("id", record.id)):
        lines += [f"{key}: {one_line(value)}"] if value else []
    lines += [] if record.result is None else [f"result: {record.result:.9g}"]
    lines += [] if record.score is None else [f"score: {record.score:.9g}"]
    lines.append(f"ending: {record.ending}")
    lines += [f"opening: {record.opening}"] if record.opening else []
    lines += [] if record.start is None else [f"start: {json.dumps(record.start)}"]
    return lines + [f"note {one_line(key).replace(':', ' ')}: {one_line(text)}" for key, text in record.notes.items()]


def parse_header(lines: Iterable[tuple[int, str]]) -> dict[str, Any]:
    """Parses `header` into arguments for Record, from (line number, line) without FIRST_LINE. Raises RecordError."""
    found: dict[str, Any] = {}
    players, notes = ["", ""], {}
    for number, line in lines:
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            raise RecordError(f"line {number}: expected 'key: value', got {shorten(line)}")
        if key in found:
            raise RecordError(f"line {number}: {key} is there twice")
        try:
            if key in ("player 0", "player 1"):
                players[int(key[-1])] = value
            elif key.startswith("note "):
                notes[key.removeprefix("note ")] = value
            elif key in _READ:
                found[key] = _READ[key](value)
            else:
                raise ValueError(f"expected one of {', '.join(_READ)}")
        except ValueError as error:
            raise RecordError(f"line {number}: {one_line(key)[:60]}: {error}") from None
    for key in ("game", "options"):
        if key not in found:
            raise RecordError(f"a record without a line '{key}: ...'")
    return found | {"players": (players[0], players[1]), "notes": notes}


def parse_value(text: str) -> float | None:
    """A search's value, or None for `-`. ValueError if it is neither."""
    if text == "-":
        return None
    value = _number(text)
    if not -1 <= value <= 1:
        raise ValueError(f"expected a number from -1 to 1, got {shorten(text)}")
    return value


def shown_value(value: float | None) -> str:
    """Undo `parse_value`, to three digits."""
    return "-" if value is None else f"{value:+.3f}"


def one_line(text: str) -> str:
    return " ".join(printable(text).split())


def shorten(text: str) -> str:
    """The text in quotes, shortened if it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"expected a number, got {shorten(text)}")
    return value


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ValueError(f"expected a whole number, got {shorten(text)}")
    return int(text)


def _ending(text: str) -> str:
    if text not in get_args(Ending):
        raise ValueError(f"expected one of {', '.join(get_args(Ending))}")
    return text


_READ: dict[str, Callable[[str], Any]] = {
    "game": str,
    "options": lambda text: schema.from_json(dict[str, Any], text),
    "network": str,
    "date": str,
    "id": str,
    "result": parse_value,
    "score": _number,
    "ending": _ending,
    "opening": _count,
    "start": lambda text: schema.from_json(str, text),
}
