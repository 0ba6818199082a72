"""Gardner's minichess: chess on 5x5 without castling and double steps. See docs/chess.md."""

from dataclasses import dataclass
from typing import ClassVar

from tengen.games.chess import Chess
from tengen.schema import setting


@dataclass(frozen=True)
class MinichessOptions:
    max_moves: int = setting(256, "moves of both players until a game is a draw", low=1, high=10000)


class Minichess(Chess):
    """Chess on 5x5."""

    name = "minichess"
    Options: ClassVar[type] = MinichessOptions
    size: ClassVar[int] = 5
