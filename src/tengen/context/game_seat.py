"""One game of a context as the host knows it, and what is told about it when it is over."""

import datetime
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tengen.data.records import sgf, text
from tengen.data.records.moves import start_of
from tengen.data.records.records import Record, RecordError
from tengen.games.core import Game

COLOURS = ("black", "white")
"""What players 0 and 1 are called here, whatever the game calls them."""


@dataclass
class GameSeat:
    """A game that is being played."""

    number: int
    place: int  # in its group
    seed: np.ndarray  # UInt32[2]: how it began, see `start_of`
    actions: list[int]  # the opening's included
    opening: int  # how many of them were random
    values: list[float | None] = field(default_factory=list)
    versions: tuple[int, int] = (0, 0)  # of black's and white's network

    def __post_init__(self) -> None:
        self.values = [None] * self.opening


def told(game: Game, seat: GameSeat, result: float, facts: dict[str, Any]) -> dict[str, Any]:
    """What `game_end` is told: see docs/context.md."""
    record = Record.of(
        game,
        seat.actions,
        komi=facts.get("komi"),
        values=tuple(seat.values),
        players=tuple(f"{name} {version}" for name, version in zip(COLOURS, seat.versions, strict=True)),
        result=result,
        score=facts.get("score"),
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        id=str(seat.number),
        opening=seat.opening,
        start=start_of(game, seat.seed),
    )
    return {
        "game": seat.number,
        "result": result,
        "length": len(seat.actions),
        "moves": np.array(seat.actions, np.int32),
        "values": np.array([np.nan if value is None else value for value in seat.values], np.float32),
        "opening": seat.opening,
        "black_version": seat.versions[0],
        "white_version": seat.versions[1],
        "record": _written(record),
    }


def _written(record: Record) -> str | None:
    """SGF for Go, plain text for others; None for a game that `games.make` does not know."""
    try:
        return (sgf if record.game == "go" else text).write([record])
    except RecordError:
        return None
