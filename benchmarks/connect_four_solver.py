"""Connect four, solved by alpha-beta search on bit boards: who wins with best play, and by which moves.

Bit 7 * column + row; the seventh bit of every column stays empty, so that lines do not run around the edge.

The functions are plain Python on whole numbers. Where numba is installed it compiles them, which makes them a hundred
times faster; positions with fewer than 14 stones take minutes without it.
"""

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tengen.games.players import Player
from tengen.match.players import perfect

F = TypeVar("F", bound=Callable[..., Any])

ROWS, COLUMNS = 6, 7
_UP = ROWS + 1  # bits per column
_CELLS = ROWS * COLUMNS
_BOTTOM = sum(1 << _UP * column for column in range(COLUMNS))
_BOARD = _BOTTOM * ((1 << ROWS) - 1)
_COLUMN = (1 << ROWS) - 1
_CENTRE_FIRST = (3, 2, 4, 1, 5, 0, 6)


try:
    NUMBA: Any | None = importlib.import_module("numba")
except ImportError:
    NUMBA = None


def _compiled(function: F) -> F:
    return NUMBA.njit(cache=False)(function) if NUMBA else function


class Solver:
    """Solves positions, with a table of solved ones. `mine` and `theirs` are stones as bits; `mine` is to move."""

    def __init__(self, entries: int = 1 << 23) -> None:
        # A prime number of entries spreads positions well; index and check are the same number.
        self._table = np.zeros(_prime_below(entries), np.int64)
        self._moves = np.zeros((_CELLS + 1, COLUMNS), np.int64)
        self._scores = np.zeros((_CELLS + 1, COLUMNS), np.int64)
        self._nodes = np.zeros(1, np.int64)

    @property
    def nodes(self) -> int:
        return int(self._nodes[0])

    def value(self, mine: int, theirs: int) -> int:
        """1, 0 or -1: what a position without four in a line is worth to the player to move."""
        if wins_now(mine, theirs):
            return 1
        stones = (mine | theirs).bit_count()
        mover = stones & 1
        for asked, worth in ((mover, 1), (1 - mover, 0)):  # does the mover win, or at least not lose?
            if _achieves(mine, theirs, stones, asked, self._table, self._moves, self._scores, self._nodes):
                return worth
        return -1

    def worths(self, mine: int, theirs: int) -> dict[int, int]:
        """1, 0 or -1 for every column that has room."""
        return {column: self._worth(mine, theirs, move) for column, move in moves(mine, theirs).items()}

    def best_moves(self, mine: int, theirs: int) -> list[int]:
        worths = self.worths(mine, theirs)
        return [column for column, worth in worths.items() if worth == max(worths.values())]

    def _worth(self, mine: int, theirs: int, move: int) -> int:
        if has_four(mine | move):
            return 1
        if mine | theirs | move == _BOARD:
            return 0
        return -self.value(theirs, mine | move)


def stones_of(state: Any) -> tuple[int, int]:
    """(mine, theirs) of a state of `tengen.games.connect_four`, the player to move first."""
    both = [sum(int(bits) << _UP * column for column, bits in enumerate(stones)) for stones in np.asarray(state.stones)]
    return (both[0], both[1]) if int(state.turn) == 0 else (both[1], both[0])


def player(solver: Solver | None = None) -> Player:
    """Plays perfectly; draws among equally good moves."""
    chosen = solver or Solver()
    return perfect("perfect", lambda state: chosen.best_moves(*stones_of(state)))


def moves(mine: int, theirs: int) -> dict[int, int]:
    """The cell (one bit) that a stone in each column would take; columns that are full are left out."""
    possible = ((mine | theirs) + _BOTTOM) & _BOARD
    cells = {column: possible & _COLUMN << _UP * column for column in range(COLUMNS)}
    return {column: cell for column, cell in cells.items() if cell}


def wins_now(mine: int, theirs: int) -> bool:
    mask = mine | theirs
    return bool((mask + _BOTTOM) & _threats(mine, mask))


@_compiled
def has_four(stones: int) -> bool:
    for step in (1, 6, 7, 8):
        pairs = stones & (stones >> step)
        if pairs & (pairs >> 2 * step):
            return True
    return False


@_compiled
def _threats(stones: int, mask: int) -> int:
    """The empty cells, reachable or not, that would complete four in a line."""
    found = (stones << 1) & (stones << 2) & (stones << 3)
    for step in (6, 7, 8):
        before = (stones << step) & (stones << 2 * step)
        after = (stones >> step) & (stones >> 2 * step)
        found |= before & (stones << 3 * step)
        found |= before & (stones >> step)
        found |= after & (stones << step)
        found |= after & (stones >> 3 * step)
    return found & (_BOARD ^ mask)


@_compiled
def _achieves(
    mine: int,
    theirs: int,
    stones: int,
    asked: int,
    table: np.ndarray,
    moves: np.ndarray,
    scores: np.ndarray,
    nodes: np.ndarray,
) -> bool:
    """Whether the player to move, who cannot win at once, wins (if that is `asked`), or else does not lose.

    Player 0 moves at even numbers of stones.
    """
    nodes[0] += 1
    mask = mine | theirs
    possible = (mask + _BOTTOM) & _BOARD
    danger = _threats(theirs, mask)
    forced = possible & danger
    if forced:
        if forced & (forced - 1):
            return False  # two at once cannot be stopped
        possible = forced
    possible &= ~(danger >> 1)  # a stone below such a cell lets the opponent have it
    wants_win = (stones & 1) == asked
    if possible == 0:
        return mask == _BOARD and not wants_win
    # A player who cannot complete a line even with every empty cell cannot win; with two cells left neither can.
    empty = _BOARD ^ mask
    if stones >= _CELLS - 2 or not has_four((mine if wants_win else theirs) | empty):
        return not wants_win
    place = ((mine + mask) << 1) | asked
    entry = table[place % table.shape[0]]
    if (entry >> 1) == place:
        return (entry & 1) == 1

    # The moves that make the most threats first, those in the middle before others.
    count = 0
    for column in _CENTRE_FIRST:
        move = possible & (_COLUMN << (_UP * column))
        if move:
            after = mask | move
            known = ((theirs + after) << 1) | asked
            entry = table[known % table.shape[0]]
            if entry == known << 1:
                return True  # a reply that is known to fail the opponent
            threats = _threats(mine | move, after)
            score = 0
            while threats:
                threats &= threats - 1
                score += 1
            at = count
            while at > 0 and scores[stones, at - 1] < score:
                scores[stones, at] = scores[stones, at - 1]
                moves[stones, at] = moves[stones, at - 1]
                at -= 1
            scores[stones, at] = score
            moves[stones, at] = move
            count += 1
    good = False
    for i in range(count):
        if not _achieves(theirs, mine | int(moves[stones, i]), stones + 1, asked, table, moves, scores, nodes):
            good = True
            break
    table[place % table.shape[0]] = (place << 1) | good
    return good


def _prime_below(number: int) -> int:
    candidates = (n for n in range(number, 2, -1) if n % 2 and all(n % d for d in range(3, int(n**0.5) + 1, 2)))
    return next(candidates)
