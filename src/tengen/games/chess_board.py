"""ChessGeometry of chess boards: where pieces go, and the numbering of moves, for square boards up to 8x8.

Squares are numbered from the mover's lower left corner along the ranks: on 8x8 a1 = 0, b1 = 1, ..., h8 = 63.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Int32, UInt32

from tengen.games import chess_lc0

EMPTY, PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(7)
THEIRS = 8  # added to the kind of the opponent's pieces
PROMOTIONS = np.array([KNIGHT, QUEEN, ROOK, BISHOP])  # by `chess_lc0.PROMOTION`
# Directions in which squares have higher numbers, then their opposites; straight ones before diagonal ones.
_UP = ((0, 1), (1, 0), (1, 1), (-1, 1))
_JUMPS = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))


@dataclass(frozen=True, eq=False)
class ChessGeometry:
    """Tables of a board of `size` x `size`; sets of squares are two words, as in `bits`."""

    size: int
    double_step: bool  # pawns may first move two squares, and be taken in passing
    castling: bool
    up: UInt32[np.ndarray, "4 squares 2"]  # the squares in a direction, up to the edge
    down: UInt32[np.ndarray, "4 squares 2"]
    knight: UInt32[np.ndarray, "squares 2"]
    king: UInt32[np.ndarray, "squares 2"]
    pawn_takes: UInt32[np.ndarray, "squares 2"]  # by our pawn; theirs take in the other direction
    their_pawn_takes: UInt32[np.ndarray, "squares 2"]
    forward: UInt32[np.ndarray, "squares 2"]
    two_forward: UInt32[np.ndarray, "squares 2"]  # from the second rank
    dark: UInt32[np.ndarray, "2"]  # the dark squares
    start: Int32[np.ndarray, " actions"]  # of each action
    end: Int32[np.ndarray, " actions"]
    promotion: Int32[np.ndarray, " actions"]

    @property
    def squares(self) -> int:
        return self.size**2

    @property
    def num_actions(self) -> int:
        return len(self.start)

    @property
    def flipped(self) -> Int32[np.ndarray, " squares"]:
        """The number of each square from the other side of the board."""
        return np.arange(self.squares, dtype=np.int32).reshape(self.size, self.size)[::-1].reshape(-1)


@cache
def geometry(size: int) -> ChessGeometry:
    """The board of chess (8), or of a smaller game without castling and double steps."""
    squares = size * size

    def table(steps: tuple[tuple[int, int], ...], longest: int = 1) -> np.ndarray:
        """The squares that each square reaches by `steps`, repeated up to `longest` times."""
        found = np.zeros((squares, 2), np.uint32)
        for square in range(squares):
            for x, y in steps:
                for n in range(1, longest + 1):
                    column, row = square % size + n * x, square // size + n * y
                    if 0 <= column < size and 0 <= row < size:
                        to = row * size + column
                        found[square, to // 32] |= np.uint32(1 << to % 32)
        return found

    def rays(ways: tuple[tuple[int, int], ...]) -> np.ndarray:
        return np.stack([table((way,), size - 1) for way in ways])

    down = tuple((-x, -y) for x, y in _UP)
    two_forward = table(((0, 2),))
    two_forward[np.arange(squares) // size != 1] = 0
    dark = [s for s in range(squares) if (s % size + s // size) % 2 == 0]
    words = np.array([sum(1 << s % 32 for s in dark if s // 32 == half) for half in (0, 1)], np.uint32)
    moves = np.array(chess_lc0.numbered_moves(size), np.int32)
    return ChessGeometry(
        size=size,
        double_step=size == 8,
        castling=size == 8,
        up=rays(_UP),
        down=rays(down),
        knight=table(_JUMPS),
        king=table((*_UP, *down)),
        pawn_takes=table(((-1, 1), (1, 1))),
        their_pawn_takes=table(((-1, -1), (1, -1))),
        forward=table(((0, 1),)),
        two_forward=two_forward if size == 8 else np.zeros_like(two_forward),
        dark=words,
        start=moves[:, 0],
        end=moves[:, 1],
        promotion=moves[:, 2],
    )
