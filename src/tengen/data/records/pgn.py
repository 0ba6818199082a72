"""Chess records as PGN, the format of all chess programs: one or many games per file.

The tag TengenRecord holds the header of the plain text record (`records`), and the comment of each move the value of
the search, so that nothing is lost between writing and reading (`pgn_reader`).
"""

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from tengen.data.records import moves
from tengen.data.records.records import Annotation, Ending, Record, RecordError, header, one_line, shown_value
from tengen.games.chess import Chess

HEADER = "TengenRecord"
VALUE = "value "
RESULTS: dict[str, float | None] = {"1-0": 1.0, "0-1": -1.0, "1/2-1/2": 0.0, "*": None}
TERMINATIONS: dict[Ending, str] = {
    "played out": "normal", "resigned": "normal", "time": "time forfeit", "forfeit": "rules infraction",
    "unknown": "unterminated",
}  # fmt: skip
_WIDTH = 79


_SIGNS = {"!": 1, "?": 2, "!!": 3, "??": 4, "!?": 5, "?!": 6}


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
