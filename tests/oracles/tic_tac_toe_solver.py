"""Tic-tac-toe, solved by full search."""

from functools import cache
from typing import Any

from tengen.games.players import Player
from tengen.games.tic_tac_toe import LINES, POINTS
from tengen.match.players import perfect

_LINES = tuple(int(line) for line in LINES)


def player() -> Player:
    """Plays perfectly; draws among equally good moves."""
    return perfect("perfect", best_moves)


def best_moves(state: Any) -> list[int]:
    turn = int(state.turn)
    return list(_solved(int(state.stones[turn]), int(state.stones[1 - turn]))[1])


def value(mine: int, theirs: int) -> int:
    """1, 0 or -1 for the player to move, who has the points `mine` (bits, row by row)."""
    return _solved(mine, theirs)[0]


@cache
def _solved(mine: int, theirs: int) -> tuple[int, tuple[int, ...]]:
    """What the position is worth, and the moves that are worth that."""
    if any(line & theirs == line for line in _LINES):
        return -1, ()
    moves = [point for point in range(POINTS) if not (mine | theirs) >> point & 1]
    if not moves:
        return 0, ()
    worth = {move: -_solved(theirs, mine | 1 << move)[0] for move in moves}
    best = max(worth.values())
    return best, tuple(move for move in moves if worth[move] == best)
