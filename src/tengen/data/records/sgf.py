"""Go records as SGF, the format of all Go programs (FF[4], one or many games per file). See docs/data.md.

Of other programs' files the main line is read: stones at the start, moves, passes; where one colour moves twice, the
other passed in between. What the options of the game cannot express becomes a note. Such files are sloppy
(`sgf_tree`); everything else is an error with its line.
"""

import contextlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tengen import __version__
from tengen.data.format.identity import plain_options
from tengen.data.records.moves import game_of
from tengen.data.records.records import (
    FIRST_LINE,
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
)
from tengen.data.records.sgf_tree import BEGIN, Node, SgfTree, decode, trees, unescape
from tengen.games.go import PLAYERS, GoOptions
from tengen.games.text import GO_LETTERS, parse_grid, render_grid

LETTERS = "abcdefghijklmnopqrs"
COLOURS = ("B", "W")
STONES = "XO"  # as Go's `render` shows them
ENDINGS: dict[str, Ending] = {"R": "resigned", "T": "time", "F": "forfeit"}
_NEXT = re.compile(r"\n\(\s*;")
_RANDOM = re.compile(r"startTurnIdx=(\d{1,4})\b")  # KataGo's self-play: the first move that the players chose


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


def read(content: bytes | str) -> list[Record]:
    """The games in an SGF file; at least one. RecordError says what is wrong with it."""
    return without_errors(read_each(content))


def read_each(content: bytes | str) -> Iterator[Record | RecordError]:
    """The games in an SGF file one by one, with an error in the place of each that cannot be read.

    After a game that is cut short, reading goes on at the next line that begins a game.
    """
    text, place = decode(content), 0
    while begin := BEGIN.search(text, place):
        try:
            tree, place = SgfTree.read(text, begin.start())
            yield _read(tree.main_line)
        except RecordError as error:
            yield error
            if place <= begin.start():
                following = _NEXT.search(text, begin.end())
                place = len(text) if following is None else following.start() + 1


def comments(content: bytes | str, number: int = 0, own: bool = False) -> dict[int, str]:
    """Comments on the moves of the game with this number, moves and games counted from 0.

    Comments that Tengen wrote begin with a value. They are left out, or with `own` only their values are.
    RecordError as for `read`.
    """
    nodes = trees(decode(content))[number].main_line
    game = _follow(nodes, _size(nodes[0]))
    found = zip(_plies(game, _first_to_play(game)), game.comments, game.values, strict=True)
    told = (
        (ply, comment if value is None else comment.partition("\n")[2] if own else "") for ply, comment, value in found
    )
    return {ply: comment.strip() for ply, comment in told if comment.strip()}


def variations(content: bytes | str, number: int = 0) -> list[tuple[int, ...]]:
    """The actions of the other lines of the game with this number, each from the start, in the order of the file.

    Lines that cannot be read, or begin with other stones, are left out. RecordError as for `read`.
    """
    tree = trees(decode(content))[number]
    size = _size(tree.main_line[0])
    main = _follow(tree.main_line, size)
    first, found = _first_to_play(main), []
    for nodes in tree.variations():
        with contextlib.suppress(RecordError):
            game = _follow(nodes, size)
            if game.stones == main.stones:
                found.append(_in_turn(game, first, size * size)[0])
    return found


class _Game(NamedTuple):
    stones: dict[int, int]  # point -> colour, at the start
    to_play: int | None  # where that is said
    moves: list[tuple[int, int]]  # (colour, action)
    values: list[float | None]
    comments: list[str]


def _read(nodes: list[Node]) -> Record:
    root = nodes[0]
    kind = _first(root, "GM", "1").strip()
    if kind != "1":
        raise RecordError(f"expected a game of Go, which is GM[1], got GM[{kind[:20]}]")
    size = _size(root)
    game = _follow(nodes, size)
    comment = unescape(_first(root, "C")).replace("\r", "").split("\n")
    first = _first_to_play(game)
    actions, values = _in_turn(game, first, size * size)
    if comment[0].strip() == FIRST_LINE:
        own = parse_header(enumerate(comment[1:], 2))
        if own["game"] != "go" or own["options"].get("size") != size:
            raise RecordError(f"the comment of its first node is of another game than this one of Go on {size}x{size}")
        return Record(**own, actions=actions, values=values)
    while actions[-3:] == (size * size,) * 3:  # some programs want three passes, or more, at the end
        actions, values = actions[:-1], values[:-1]
    options, notes = _options(root, size, len(actions))
    start = _start(game.stones, first, size, options.get("komi")) if game.stones or first else None
    return Record(
        game="go",
        options=options,
        actions=actions,
        values=values,
        players=(_line(root, "PB"), _line(root, "PW")),
        date=_line(root, "DT"),
        id=_line(root, "GN"),
        opening=min(int(random[1]), len(actions)) if (random := _RANDOM.match(comment[0])) else 0,
        start=start,
        notes=notes,
        **_result(_line(root, "RE")),
    )


def _follow(nodes: list[Node], size: int) -> _Game:
    game = _Game({}, None, [], [], [])
    for number, node in enumerate(nodes, 1):
        for key, colour in (("AB", 0), ("AW", 1), ("AE", None)):
            if game.moves and key in node:
                raise RecordError(f"node {number}: {key} puts up stones after the first move, which is not supported")
            for point in (point for value in node.get(key, ()) for point in _points(value, size)):
                game.stones.pop(point, None)
                if colour is not None:
                    game.stones[point] = colour
        if "PL" in node and not game.moves:
            colour = _first(node, "PL").strip()[:1].upper()
            if colour in COLOURS:
                game = game._replace(to_play=COLOURS.index(colour))
        for colour, key in enumerate(COLOURS):
            if key in node:
                game.moves.append((colour, _action(_first(node, key), size, number)))
                game.values.append(_value(node))
                game.comments.append(unescape(_first(node, "C")).replace("\r", "").strip())
    return _with_handicap(game, _line(nodes[0], "HA"), size * size)


def _with_handicap(game: _Game, said: str, passing: int) -> _Game:
    """Handicap stones that are written as moves of Black, one after the other, are stones: White has not passed."""
    count = int(said) if re.fullmatch(r"\d{1,2}", said) else 0
    points = {action for colour, action in game.moves[:count] if colour == 0 and action != passing}
    if (
        count < 2
        or game.stones
        or len(points) < count
        or any(colour == 0 for colour, _ in game.moves[count : count + 1])
    ):
        return game
    after = (game.moves[count:], game.values[count:], game.comments[count:])
    return _Game(dict.fromkeys(points, 0), 1, *after)


def _first_to_play(game: _Game) -> int:
    if game.to_play is not None:
        return game.to_play
    if game.moves:
        return game.moves[0][0]
    return int(0 in game.stones.values() and 1 not in game.stones.values())  # after handicap stones White begins


def _in_turn(game: _Game, first: int, passing: int) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """Actions and values, with a pass where a colour moves twice."""
    actions: list[int] = []
    values: list[float | None] = []
    for ply, (_, action), value in zip(_plies(game, first), game.moves, game.values, strict=True):
        if ply > len(actions):
            actions.append(passing)
            values.append(None)
        actions.append(action)
        values.append(value)
    return tuple(actions), tuple(values)


def _plies(game: _Game, first: int) -> list[int]:
    """Which move each of the moves is, if the other colour passes where one moves twice."""
    plies: list[int] = []
    for colour, _ in game.moves:
        following = plies[-1] + 1 if plies else 0
        plies.append(following + ((first + following) % 2 != colour))
    return plies


def _size(root: Node) -> int:
    text = _first(root, "SZ", "19").strip()
    columns, _, rows = text.partition(":")
    if not re.fullmatch(r"\d{1,3}", columns) or (rows and rows != columns) or not 2 <= int(columns) <= 19:
        raise RecordError(f"SZ: expected a square board of 2 to 19 points, got {shorten(text)}")
    return int(columns)


def _action(text: str, size: int, number: int) -> int:
    text = text.strip()
    if not text or text == "tt":  # the pass of old files, whose boards have no such point
        return size * size
    return _number(text, size, f"node {number}")


def _number(text: str, size: int, where: str) -> int:
    if len(text) != 2 or any(letter not in LETTERS[:size] for letter in text):
        raise RecordError(f"{where}: expected a point of a {size}x{size} board, such as cc, got {shorten(text)}")
    return LETTERS.index(text[1]) * size + LETTERS.index(text[0])


def _points(text: str, size: int) -> list[int]:
    """The points of one value of AB and its like: one, or a rectangle."""
    corners = [_number(part.strip(), size, "stones at the start") for part in text.split(":", 1)]
    (top, left), (bottom, right) = divmod(corners[0], size), divmod(corners[-1], size)
    return [row * size + column for row in range(top, bottom + 1) for column in range(left, right + 1)]


def _value(node: Node) -> float | None:
    """The value of the search, which is the first line of a comment."""
    found = re.match(r"value ([+-][01]\.\d{3})(?:[\r\n]|\Z)", unescape(_first(node, "C")).strip())
    try:
        return parse_value(found[1]) if found else None
    except ValueError:
        return None


def _options(root: Node, size: int, moves: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Options of the game as far as they are known, and notes about the rest."""
    options: dict[str, Any] = {"size": size}
    notes: dict[str, str] = {}
    komi, rules = _line(root, "KM"), _line(root, "RU")
    try:
        points = float(komi.replace(",", ".", 1))  # half of the world writes 6,5
    except ValueError:
        points = math.nan
    if (2 * points).is_integer() and abs(points) <= size * size:  # some servers write 375 for 3.75
        options["komi"] = points
    elif komi:
        notes["komi"] = komi
    own = re.match(r"ko(SIMPLE|POSITIONAL|SITUATIONAL)score.*sui([01])", rules)
    if own:
        options |= {"ko": own[1].lower(), "suicide": own[2] == "1"}
    else:
        # Where people have played, nobody was stopped by superko; these two rules allow suicide.
        suicide = rules.lower() in ("nz", "new zealand", "tromp-taylor")
        options |= {"ko": "simple", "suicide": suicide}
    if moves > max(2 * size * size, 50):
        options["max_moves"] = moves
    if rules:
        notes["rules"] = rules
    for key, note in (("BR", "black rank"), ("WR", "white rank"), ("HA", "handicap"), ("EV", "event"), ("PC", "place")):
        if text := _line(root, key):
            notes[note] = text
    return options, notes


def _start(stones: dict[int, int], to_play: int, size: int, komi: float | None) -> str:
    cells = [
        [STONES[stones[p]] if (p := row * size + c) in stones else "." for c in range(size)] for row in range(size)
    ]
    notes = {"to play": PLAYERS[to_play], "komi": f"{GoOptions().komi if komi is None else komi:g}", "ko": "none"}
    return render_grid(cells, GO_LETTERS[:size], [str(size - row) for row in range(size)], notes)


def _result(text: str) -> dict[str, Any]:
    found = re.fullmatch(r"([BW])\+\s*(.*)", text, re.IGNORECASE)
    if found is None:
        drawn = text.lower() in ("0", "draw", "jigo")
        return {"result": 0.0, "score": 0.0} if drawn else {"ending": "unknown"}
    sign = 1.0 if found[1].upper() == "B" else -1.0
    if re.fullmatch(r"\d{1,3}(\.\d{1,3})?", found[2]):
        return {"result": sign, "score": sign * float(found[2])}
    return {"result": sign, "ending": ENDINGS.get(found[2][:1].upper(), "unknown")}


def _first(node: Node, key: str, default: str = "") -> str:
    values = node.get(key)
    return values[0] if values else default


def _line(node: Node, key: str) -> str:
    return one_line(unescape(_first(node, key)))
