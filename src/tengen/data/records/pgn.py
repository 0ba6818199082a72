"""Chess records as PGN, the format of all chess programs: one or many games per file.

The tag TengenRecord holds the header of the plain text record (`records`), and the comment of each move the value of
the search, so that nothing is lost between writing and reading. Files from elsewhere are read as far as Tengen's rules
go.
"""

import contextlib
import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from tengen.data.records import moves
from tengen.data.records.records import (
    MOST_VARIATIONS,
    Annotation,
    Ending,
    Record,
    RecordError,
    header,
    one_line,
    parse_header,
    parse_value,
    shorten,
    shown_value,
    without_errors,
    without_mark,
)
from tengen.games.chess import Chess
from tengen.games.chess_position import ENDS

HEADER = "TengenRecord"
VALUE = "value "
RESULTS: dict[str, float | None] = {"1-0": 1.0, "0-1": -1.0, "1/2-1/2": 0.0, "*": None}
TERMINATIONS: dict[Ending, str] = {
    "played out": "normal", "resigned": "normal", "time": "time forfeit", "forfeit": "rules infraction",
    "unknown": "unterminated",
}  # fmt: skip
_WIDTH = 79
_SIGNS = {"!": 1, "?": 2, "!!": 3, "??": 4, "!?": 5, "?!": 6}
_TAG = re.compile(r'\[\s*(\w+)\s+"((?:[^"\\\n]|\\.)*)"\s*\]')
_SPACE = re.compile(r"\s*")
_TOKEN = re.compile(
    r"""(?P<comment>\{[^}]*\}|;[^\n]*) | (?P<open>\() | (?P<close>\)) | (?P<sign>\$\d+|[!?]+)
      | (?P<result>1-0|0-1|1/2-1/2|\*) | (?P<number>\d+\s*\.+|\d+(?=\s)|\.+) | (?P<move>[A-Za-z0][\w+#=:/-]*[!?]*)""",
    re.VERBOSE,
)
_STANDARD = ("", "standard", "chess", "normal", "chess960", "fischerandom", "fischerrandom", "fischer random")


def write(records: Iterable[Record]) -> str:
    """The games, one after the other. ValueError if one is not chess."""
    return "\n".join(write_annotated(record, {}) for record in records)


def write_annotated(record: Record, annotations: Mapping[int, Annotation]) -> str:
    """One game with annotations of its moves, counted from 0; the moves of the game stay the main line."""
    if record.game != "chess":
        raise ValueError(f"PGN is for chess, and this is a game of {record.game}")
    game = cast(Chess, moves.game_of(record))
    start = moves.start(game, record)
    try:
        moments, names = game.replayed(start, record.actions), game.line(start, record.actions)
    except ValueError as error:
        raise RecordError(str(error)) from error
    ply = int(start.ply)
    words: list[str] = []
    again = True  # whether the next move needs its number: after the start and after comments
    for k, (name, value) in enumerate(zip(names, record.values, strict=True)):
        said = annotations.get(k, Annotation())
        words += _numbered(ply + k, name, again)
        words += [f"${_SIGNS[said.sign]}"] if said.sign else []
        told = ([] if value is None else [VALUE + shown_value(value)]) + ([said.comment] if said.comment else [])
        words += _comment(told)
        if said.instead:
            words += _variation(game, moments[k].state, ply + k, said)
        again = bool(told or said.instead)
    result = outcome(record)
    body = "\n".join(textwrap.wrap(" ".join([*words, result]), _WIDTH, break_long_words=False, break_on_hyphens=False))
    return "\n".join([*(_tag(key, text) for key, text in _tags(record, game, start)), "", body, ""])


def outcome(record: Record) -> str:
    """1-0, 0-1, 1/2-1/2, or * for a game without a result."""
    return next(text for text, result in RESULTS.items() if result == record.result)


def _tags(record: Record, game: Chess, start: Any) -> Iterable[tuple[str, str]]:
    white, black = (one_line(name) or "?" for name in record.players)
    event = one_line(record.id) or "?"
    yield from (("Event", event), ("Site", "?"), ("Date", record.date.replace("-", ".") or "????.??.??"))
    yield from (("Round", "?"), ("White", white), ("Black", black), ("Result", outcome(record)))
    if record.ending != "played out":
        yield "Termination", TERMINATIONS[record.ending]
    if game.options.chess960:
        yield "Variant", "Chess960"
    if record.start is not None or game.options.chess960:
        yield from (("SetUp", "1"), ("FEN", game.fen(start)))
    yield HEADER, json.dumps(header(record))


def _tag(key: str, text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'[{key} "{escaped}"]'


def _numbered(ply: int, name: str, again: bool) -> list[str]:
    number = f"{ply // 2 + 1}{'...' if ply % 2 else '.'}"
    return [number, name] if again or ply % 2 == 0 else [name]


def _comment(lines: Sequence[str]) -> list[str]:
    text = one_line("; ".join(lines)).replace("}", ")")
    return [f"{{{text}}}"] if text else []


def _variation(game: Chess, state: Any, ply: int, said: Annotation) -> list[str]:
    first, *rest = game.line(state, said.instead)
    words = [*_numbered(ply, first, True), *_comment([said.instead_comment] if said.instead_comment else [])]
    for k, name in enumerate(rest, 1):
        words += _numbered(ply + k, name, k == 1 and bool(said.instead_comment))
    return [f"({' '.join(words)})"]


class PgnMove(NamedTuple):
    name: str
    comment: str


class PgnGame(NamedTuple):
    """The parts of one game. Moves of the main line and of variations are a tree."""

    tags: dict[str, str]
    moves: list[PgnMove]
    result: str
    names: list[str]  # of all moves, in the order of the file
    before: list[int]  # the move before each, -1 at the start
    ends: list[int]  # the last move of each variation


def read(content: bytes) -> list[Record]:
    """All games of a file; at least one. RecordError says which is wrong, and why."""
    return without_errors(read_each(content))


def read_each(content: bytes) -> Iterator[Record | RecordError]:
    """The games one by one, with an error in the place of each that cannot be read."""
    for text in _games(_decoded(content)):
        try:
            yield _record(_parse(text))
        except RecordError as error:
            yield error


def comments(content: bytes, number: int) -> dict[int, str]:
    """The comments on the moves of a game, which are counted from 0; without the values that Tengen writes."""
    found = _parse(_games(_decoded(content))[number])
    told = {ply: _value(move.comment)[1] for ply, move in enumerate(found.moves)}
    return {ply: text for ply, text in told.items() if text}


def variations(content: bytes, number: int = 0) -> list[tuple[int, ...]]:
    """The actions of the variations of a game, each from the start, in the order of the file.

    A variation ends before a move that is not legal. RecordError as for `read`.
    """
    found = _parse(_games(_decoded(content))[number])
    first = Record(**(_header(found.tags) or _foreign(found)), actions=())
    game = cast(Chess, moves.game_of(first))
    ends = found.ends[:MOST_VARIATIONS]
    wanted: set[int] = set()
    for number in ends:
        while number >= 0 and number not in wanted:
            wanted.add(number)
            number = found.before[number]
    positions = {-1: game.moment(moves.start(game, first))}
    lines: dict[int, tuple[int, ...]] = {-1: ()}
    for number in sorted(wanted):
        before = found.before[number]
        lines[number] = lines[before]
        with contextlib.suppress(ValueError):
            if before in positions and ENDS[int(positions[before].state.end)] == "running":
                action = game.parse_action(positions[before].state, found.names[number])
                positions[number] = game.after(positions[before], action)
                lines[number] = (*lines[before], action)
    return [lines[number] for number in ends]


def _decoded(content: bytes) -> str:
    """PGN is Latin-1 by its standard, and UTF-8 in practice."""
    plain = without_mark(content)
    try:
        return plain.decode()
    except UnicodeDecodeError:
        return plain.decode("latin-1")


def _games(text: str) -> list[str]:
    """The texts of the games: a new one begins with tags after moves."""
    found: list[list[str]] = []
    in_tags, depth = False, False
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.startswith("%"):
            continue
        tag = not depth and _TAG.match(line.strip()) is not None
        if tag and not in_tags:
            found.append([])
        if line.strip():
            in_tags = tag
            if not tag:
                depth = _in_comment(line, depth)
        if found or line.strip():
            found = found or [[]]
            found[-1].append(line)
    return ["\n".join(lines) for lines in found if any(line.strip() for line in lines)]


def _in_comment(line: str, inside: bool) -> bool:
    """Whether a comment is open at the end of the line."""
    for sign in line:
        if inside:
            inside = sign != "}"
        elif sign == "{":
            inside = True
        elif sign == ";":
            break
    return inside


def _parse(text: str) -> PgnGame:
    tags: dict[str, str] = {}
    at = _SPACE.match(text).end()  # type: ignore[union-attr]
    while match := _TAG.match(text, at):
        tags[match[1]] = re.sub(r"\\(.)", r"\1", match[2])
        at = _SPACE.match(text, match.end()).end()  # type: ignore[union-attr]
    listed: list[str] = []
    told: list[list[str]] = []  # the comments on each of them
    names: list[str] = []
    before: list[int] = []
    ends: list[int] = []
    open_lines = [-1]  # the newest move of the main line, and of each variation that is open
    result = tags.get("Result", "*")
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        token = _TOKEN.match(text, at)
        if token is None:
            raise RecordError(f"expected a move, got {shorten(text[at : at + 40].splitlines()[0])}")
        at = token.end()
        if token["comment"]:
            if listed and len(open_lines) == 1:
                told[-1].append(" ".join(token["comment"].strip("{};").split()))
        elif token["open"]:  # instead of the newest move
            open_lines.append(before[open_lines[-1]] if open_lines[-1] >= 0 else -1)
        elif token["close"]:
            ends.append(open_lines.pop())
            if not open_lines:
                raise RecordError("a variation ends that never began")
        elif token["result"] and len(open_lines) == 1:
            result = token["result"]
            break
        elif token["move"]:
            names.append(token["move"].rstrip("!?"))
            before.append(open_lines[-1])
            open_lines[-1] = len(names) - 1
            if len(open_lines) == 1:
                listed.append(names[-1])
                told.append([])
    line = [PgnMove(name, "\n".join(filter(None, lines))) for name, lines in zip(listed, told, strict=True)]
    return PgnGame(tags, line, result, names, before, ends)


def _record(found: PgnGame) -> Record:
    tags = found.tags
    about = _header(tags) or _foreign(found)
    first = Record(**about, actions=())
    game = cast(Chess, moves.game_of(first))
    if not isinstance(game, Chess) or game.name != "chess":
        raise RecordError(f"{HEADER}: expected a game of chess, got {shorten(first.game)}")
    now = game.moment(moves.start(game, first))
    actions: list[int] = []
    values: list[float | None] = []
    for ply, move in enumerate(found.moves):
        end = ENDS[int(now.state.end)]
        if end != "running":
            if end in ("checkmate", "stalemate"):
                raise RecordError(f"move {ply + 1}: {shorten(move.name)} comes after {end}")
            left = f"{len(found.moves) - ply} moves after {end}, which ends a game by Tengen's rules"
            about["notes"] = {**about["notes"], "left out": left}
            break
        try:
            actions.append(game.parse_action(now.state, move.name))
        except ValueError as error:
            raise RecordError(f"move {ply + 1}: {error}") from error
        values.append(_value(move.comment)[0])
        now = game.after(now, actions[-1])
    return Record(**about, actions=tuple(actions), values=tuple(values))


def _header(tags: dict[str, str]) -> dict[str, Any] | None:
    if HEADER not in tags:
        return None
    try:
        lines = json.loads(tags[HEADER])
    except (ValueError, RecursionError):
        raise RecordError(f"{HEADER}: expected JSON") from None
    if not (isinstance(lines, list) and lines and all(isinstance(line, str) for line in lines)):
        raise RecordError(f"{HEADER}: expected a list of lines")
    return parse_header(enumerate(lines[1:], 2))


def _foreign(found: PgnGame) -> dict[str, Any]:
    tags = found.tags
    variant = tags.get("Variant", "").strip().lower()
    if variant not in _STANDARD:
        raise RecordError(f"Variant: Tengen plays chess and Chess960, got {shorten(tags['Variant'])}")
    options: dict[str, Any] = {"chess960": variant not in _STANDARD[:4]}
    longest = Chess.Options().max_moves
    # The players had no such limit.
    options["max_moves"] = longest if len(found.moves) < longest else len(found.moves) + longest
    start = None
    if fen := tags.get("FEN", "").strip():
        game = cast(Chess, moves.game_of(Record("chess", options, ())))
        fields = fen.split()
        fen = " ".join([*fields, *("-", "-", "0", "1")[len(fields) - 2 :]]) if 2 <= len(fields) < 6 else fen
        try:
            start = game.render(game.from_text(f"fen: {fen}"))
        except ValueError as error:
            raise RecordError(f"FEN: {error}") from error
    elif options["chess960"]:
        raise RecordError("a game of Chess960 without the tag FEN, which says how it began")
    date = tags.get("Date", "").replace(".", "-")
    known = ("Event", "Site", "Date", "Round", "White", "Black", "Result", "FEN", "SetUp", "Variant", "Termination")
    notes = {key.lower(): one_line(text) for key, text in tags.items() if key not in known and text not in ("", "?")}
    ending = next((end for end, text in TERMINATIONS.items() if text == tags.get("Termination", "").lower()), None)
    return {
        "game": "chess",
        "options": options,
        "players": tuple("" if tags.get(side, "?") == "?" else tags[side] for side in ("White", "Black")),
        "result": RESULTS.get(found.result),
        "ending": ending or ("played out" if found.result in RESULTS and found.result != "*" else "unknown"),
        "date": date if re.fullmatch(r"\d{4}-\d\d-\d\d", date) else "",
        "start": start,
        "notes": notes,
    }


def _value(comment: str) -> tuple[float | None, str]:
    """The search's value that a comment begins with, and the rest of it."""
    if not comment.startswith(VALUE):
        return None, comment
    number, _, rest = comment.removeprefix(VALUE).partition(";")
    try:
        return parse_value(number.strip()), rest.strip()
    except ValueError:
        return None, comment
