"""Go records as SGF, the format of all Go programs (FF[4], one or many games per file).

The comment of the first node holds the header of the plain text record (`records`), and that of each move the value of
the search, so that nothing is lost between writing and reading (`sgf_reader`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from tengen import __version__
from tengen.data.format.identity import plain_options
from tengen.data.records.moves import game_of
from tengen.data.records.records import Annotation, Ending, Record, header, one_line, shown_value
from tengen.games.go import PLAYERS
from tengen.games.text import parse_grid

LETTERS = "abcdefghijklmnopqrs"
COLOURS = ("B", "W")
STONES = "XO"  # as Go's `render` shows them
ENDINGS: dict[str, Ending] = {"R": "resigned", "T": "time", "F": "forfeit"}


def write(records: Iterable[Record]) -> str:
    """The games, one after the other. ValueError if one is not Go."""
    return "".join(write_annotated(record, {}) for record in records)


def write_annotated(record: Record, annotations: Mapping[int, Annotation]) -> str:
    """One game with annotations of its moves, counted from 0; the moves of the game stay the main line."""
    if record.game != "go":
        raise ValueError(f"SGF is for go, and this is a game of {record.game}")
    options = plain_options(game_of(record))
    size = options["size"]
    stones, player = _setup(record, size)
    properties = {
        "GM": "1",
        "FF": "4",
        "CA": "UTF-8",
        "AP": f"Tengen:{__version__}",
        "SZ": str(size),
        "KM": f"{options['komi']:g}",
        "RU": _rules(options),
        "PB": record.players[0],
        "PW": record.players[1],
        "DT": record.date,
        "GN": record.id,
        "RE": result(record),
    }
    lines = ["(;" + "".join(_property(key, one_line(value)) for key, value in properties.items() if value)]
    for colour, points in zip(COLOURS, stones, strict=True):
        lines += [f"A{colour}" + "".join(f"[{_point(point, size)}]" for point in points)] if points else []
    lines += [f"PL[{COLOURS[player]}]"] if record.start is not None else []
    lines.append(_property("C", "\n".join(header(record))))
    variations: list[str] = []  # that come when the main line is over, the last one first
    for ply, (action, value) in enumerate(zip(record.actions, record.values, strict=True)):
        said = annotations.get(ply, Annotation())
        words = ([] if value is None else [f"value {shown_value(value)}"]) + ([said.comment] if said.comment else [])
        comment = _property("C", "\n".join(words)) if words else ""
        others = "".join(_property(key, text) for key, text in said.properties.items())
        branch = "(" if said.instead else ""
        lines.append(f"{branch};{COLOURS[(player + ply) % 2]}[{_point(action, size)}]{others}{comment}")
        if said.instead:
            variations.append(_variation(said, player + ply, size))
    # Each variation stands behind the rest of the game that it is an alternative to.
    lines[-1] += "".join(f")\n{variation}" for variation in reversed(variations))
    return "\n".join(lines) + ")\n"


def _variation(said: Annotation, turn: int, size: int) -> str:
    comment = _property("C", said.instead_comment) if said.instead_comment else ""
    moves = [f";{COLOURS[(turn + ply) % 2]}[{_point(action, size)}]" for ply, action in enumerate(said.instead)]
    return "(" + moves[0] + comment + "".join(moves[1:]) + ")"


def result(record: Record) -> str:
    """The property RE: B+3.5, W+R, 0, Void."""
    if record.result is None:
        return "Void"
    if record.result == 0:
        return "0"
    letters = {ending: letter for letter, ending in ENDINGS.items()}
    points = "" if record.score is None else f"{abs(record.score):g}"
    return f"{'B' if record.result > 0 else 'W'}+{letters.get(record.ending, points)}"


def _rules(options: dict[str, Any]) -> str:
    """The rules in KataGo's notation, since no common name covers them."""
    return f"ko{options['ko'].upper()}scoreAREAtaxNONEsui{int(options['suicide'])}"


def escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("]", "\\]")


def _property(key: str, text: str) -> str:
    return f"{key}[{escape(text)}]"


def _point(action: int, size: int) -> str:
    if not 0 <= action <= size * size:
        raise ValueError(f"go: there is no action {action}")
    return "" if action == size * size else LETTERS[action % size] + LETTERS[action // size]


def _setup(record: Record, size: int) -> tuple[tuple[list[int], list[int]], int]:
    """Stones on the board at the start (black, white), and the player who begins."""
    if record.start is None:
        return ([], []), 0
    cells, notes = parse_grid(record.start, (size, size), f".{STONES}", ("to play", "komi", "ko"), "go")
    flat = [cell for row in cells for cell in row]
    black, white = ([point for point, cell in enumerate(flat) if cell == stone] for stone in STONES)
    return (black, white), PLAYERS.index(notes["to play"])
