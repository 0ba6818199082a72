"""Chess games as PGN, which all chess programs read. Moves are checked by the game's own rules."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np

from tengen.data.records import moves
from tengen.data.records.records import Record, RecordError, one_line, shorten
from tengen.games.core import Game

GAMES = ("pgx:chess", "chess")
"""Names of games that have FEN in their boards and moves such as e2e4."""
_RESULTS = {1.0: "1-0", -1.0: "0-1", 0.0: "1/2-1/2"}
_TAG = re.compile(r'\[\s*(\w+)\s+"((?:[^"\\]|\\.)*)"\s*\]')
_NOISE = re.compile(r"\{[^}]*\}|;[^\n]*|\$\d+|\d+\.(?:\.\.)?|^%[^\n]*", re.MULTILINE)
_SAN = re.compile(r"([KQRBN]?)([a-h]?)([1-8]?)x?([a-h][1-8])(?:=?([QRBNqrbn]))?")
_LONGEST = 1_000_000  # characters of a text
_COLUMNS = 80


def write(records: Iterable[Record]) -> str:
    """The games as PGN. RecordError if a move is not legal."""
    return "\n".join(_write(record) for record in records)


def read(text: str, record: Record) -> Record:
    """The first game of a PGN text, as a game with the rules of `record`. RecordError says which move is wrong."""
    if len(text) > _LONGEST:
        raise RecordError(f"PGN: the text has more than {_LONGEST:,} characters")
    tags = {key: value.replace('\\"', '"') for key, value in _TAG.findall(text)}
    body = _without_variations(_NOISE.sub(" ", _TAG.sub(" ", text)))
    words = [word for word in body.split() if word not in (*_RESULTS.values(), "*")]
    game = moves.game_of(record)
    start = f"fen: {tags['FEN']}" if "FEN" in tags else None
    begun = Record(record.game, record.options, (), start=start)
    state, step = moves.start(game, begun), jax.jit(game.step)
    start = None if start is None else game.render(state)
    actions = []
    for number, word in enumerate(words, 1):
        named = _legal(game, state)
        fen = _fen(game, state)
        found = [action for name, action in named.items() if _means(word, name, fen, named)]
        if len(found) != 1:
            problem = "is not legal here" if not found else "may mean several moves"
            raise RecordError(f"PGN: move {number}: {shorten(word)} {problem}")
        actions.append(found[0])
        state = step(state, np.int32(found[0]))
    results = {text: value for value, text in _RESULTS.items()}
    return Record(
        record.game,
        record.options,
        tuple(actions),
        players=(tags.get("White", ""), tags.get("Black", "")),
        result=results.get(tags.get("Result", "")),
        ending="unknown",
        start=start,
    )


def san(name: str, fen: str, named: Iterable[str]) -> str:
    """The move `name`, such as g1f3, as PGN writes it, without the marks of check: Nf3. `named` are all legal moves."""
    squares = _squares(fen)
    piece, target = squares[name[:2]].upper(), name[2:4]
    if piece == "K" and abs(ord(name[0]) - ord(name[2])) == 2:
        return "O-O" if name[2] == "g" else "O-O-O"
    taking = target in squares or (piece == "P" and name[0] != name[2])
    if piece == "P":
        return (f"{name[0]}x" if taking else "") + target + (f"={name[4].upper()}" if len(name) > 4 else "")
    rivals = [
        other
        for other in named
        if other != name and other[2:4] == target and squares.get(other[:2], "").upper() == piece
    ]
    origin = ""
    if rivals:
        column, row = (all(other[at] != name[at] for other in rivals) for at in (0, 1))
        origin = name[0] if column else name[1] if row else name[:2]
    return piece + origin + ("x" if taking else "") + target


def _write(record: Record) -> str:
    game, line = moves.game_of(record), []
    for ply, (action, state) in enumerate(zip(record.actions, moves.replay(record), strict=False)):
        fen = _fen(game, state)
        black = fen.split()[1] == "b"
        if not black or not ply:
            line.append(f"{fen.split()[5]}{'...' if black else '.'}")
        line.append(san(game.action_name(state, action), fen, _legal(game, state)))
    result = _RESULTS.get(record.result, "*") if record.result is not None else "*"
    tags = {
        "Event": "Tengen", "Site": "?", "Date": record.date.replace("-", ".") or "????.??.??", "Round": "?",
        "White": record.players[0] or "?", "Black": record.players[1] or "?", "Result": result,
    }  # fmt: skip
    if record.start is not None:
        tags |= {"SetUp": "1", "FEN": _fen(game, moves.start(game, record))}
    head = [f'[{key} "{one_line(value).translate(str.maketrans({chr(34): chr(39), chr(92): "/"}))}"]' for key, value in
            tags.items()]  # fmt: skip
    return "\n".join([*head, "", *_filled([*line, result])]) + "\n"


def _filled(words: Iterable[str]) -> Iterator[str]:
    line = ""
    for word in words:
        if line and len(line) + 1 + len(word) > _COLUMNS:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    yield line


def _means(word: str, name: str, fen: str, named: Iterable[str]) -> bool:
    """Whether a move of a text, in short or long notation, is the one called `name`."""
    bare = word.rstrip("+#!?")
    if bare.lower() == name:
        return True
    squares = _squares(fen)
    piece = squares[name[:2]].upper()
    if bare.upper().replace("0", "O") in ("O-O", "O-O-O"):
        return piece == "K" and san(name, fen, named) == bare.upper().replace("0", "O")
    found = _SAN.fullmatch(bare)
    if found is None:
        return False
    kind, column, row, target, promotion = found.groups()
    if (kind or "P") != piece or target != name[2:4] or (promotion or "").lower() != name[4:]:
        return False
    if piece == "K" and abs(ord(name[0]) - ord(name[2])) == 2:
        return False
    return column in ("", name[0]) and row in ("", name[1])


def _without_variations(text: str) -> str:
    depth, kept = 0, []
    for sign in text:
        depth += sign == "("
        if not depth:
            kept.append(sign)
        depth -= sign == ")" and depth > 0
    return "".join(kept)


def _legal(game: Game, state: Any) -> dict[str, int]:
    legal = np.flatnonzero(np.asarray(game.legal_actions(state)))
    return {game.action_name(state, int(action)): int(action) for action in legal}


def _fen(game: Game, state: Any) -> str:
    return next(
        line.removeprefix("fen:").strip() for line in game.render(state).splitlines() if line.startswith("fen:")
    )


def _squares(fen: str) -> dict[str, str]:
    """{square: piece}."""
    found = {}
    for rank, text in zip("87654321", fen.split()[0].split("/"), strict=True):
        row = "".join("." * int(sign) if sign.isdigit() else sign for sign in text)
        found |= {f"{column}{rank}": sign for column, sign in zip("abcdefgh", row, strict=True) if sign != "."}
    return found
