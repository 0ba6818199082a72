"""Things to look at: pictures read back, and reviews made by hand."""

import struct
import xml.etree.ElementTree as xml
import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import numpy as np

from tengen import games
from tengen.analysis.analysis import follow
from tengen.analysis.review import Review, ReviewedMove
from tengen.data.records.records import Record
from tengen.games.core import Game


@cache
def make(name: str, **options: Any) -> Game:
    """A game, always the same one, so that it is compiled once."""
    return games.make(name, **options)


@cache
def _step(game: Game) -> Any:
    return jax.jit(game.step)


def state_after(game: Game, names: str) -> Any:
    """The position after these moves."""
    step, state = _step(game), game.init(jax.random.key(0))
    for name in names.split():
        state = step(state, np.int32(game.parse_action(state, name)))
    return state


def elements(svg: str, kind: str) -> list[xml.Element]:
    """Those of a picture that stand for something: every word of `kind` is in their class."""
    root = xml.fromstring(svg)
    return [each for each in root.iter() if set(kind.split()) <= set(each.get("class", "").split())]


def pixels(png: bytes) -> np.ndarray:
    """UInt8[H, W, 4] of a PNG with 8 bits per channel: the format by its book, nothing of a library's."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    place, data, header = 8, b"", (0,) * 7
    while place < len(png):
        length, name = struct.unpack(">I4s", png[place : place + 8])
        body = png[place + 8 : place + 8 + length]
        assert struct.unpack(">I", png[place + 8 + length : place + 12 + length])[0] == zlib.crc32(name + body)
        if name == b"IHDR":
            header = struct.unpack(">IIBBBBB", body)
        data += body if name == b"IDAT" else b""
        place += 12 + length
    width, height, depth, kind, _, _, interlaced = header
    assert (depth, kind, interlaced) == (8, 6, 0)
    raw, long = zlib.decompress(data), 4 * width
    above, rows = [0] * (long + 4), []
    for y in range(height):
        way, *line = raw[y * (long + 1) : (y + 1) * (long + 1)]
        row = [0] * 4  # what is left of the picture
        for x, byte in enumerate(line, 4):
            left, up, corner = row[x - 4], above[x], above[x - 4]
            guess = left + up - corner
            near = min((left, up, corner), key=lambda each: abs(guess - each))
            row.append((byte + (0, left, up, (left + up) // 2, near)[way]) % 256)
        rows.append(row[4:])
        above = row
    return np.array(rows, np.uint8).reshape(height, width, 4)


def judged(
    game: Game, state: Any, number: int, made: str, best: Sequence[str], after: float, better: float
) -> ReviewedMove:
    """A move as a review might judge it."""
    actions, here = [], state
    for name in best:
        actions.append(game.parse_action(here, name))
        here = _step(game)(here, np.int32(actions[-1]))
    line = tuple(follow(game, state, actions))
    played = follow(game, state, [game.parse_action(state, made)])[0]
    rank = 1 if line[0].action == played.action else 3
    return ReviewedMove(number, played, better - 0.05, after, line, better, rank, 0.25, 100)


def go_review(players: tuple[str, str] = ("Shusai", "Go ] \\ Seigen"), until: int = 4) -> Review:
    """Four moves on 5x5: the second is a blunder, the third is what the search wanted, the fourth a pass."""
    game = make("go", size=5, komi=6.5)
    names = ["C3", "A1", "C4", "pass"]
    states = [state_after(game, " ".join(names[:n])) for n in range(4)]
    actions = [game.parse_action(state, name) for state, name in zip(states, names, strict=True)]
    record = Record.of(game, actions, players=players, result=1.0, ending="resigned")
    moves = (
        judged(game, states[0], 1, "C3", ["D3", "C3"], 0.10, 0.15),
        judged(game, states[1], 2, "A1", ["D4", "pass", "B2"], -0.90, -0.10),
        judged(game, states[2], 3, "C4", ["C4"], 0.92, 0.90),
        judged(game, states[3], 4, "pass", ["D4"], -1.0, -0.85),
    )
    return Review("judge", game, record, moves[:until])
