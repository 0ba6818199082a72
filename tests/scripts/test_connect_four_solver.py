"""The solver against plain minimax by slow rules on late positions, and against what is known about early ones."""

import random
from copy import copy
from typing import Any

import pytest

from benchmarks import connect_four_solver as solved
from benchmarks.connect_four_solver import Solver, stones_of
from tests.helpers.game_recording import make
from tests.helpers.search_positions import after
from tests.oracles.connect_four import COLUMNS, ROWS, ConnectFour


def late_games(count: int, empty: int) -> list[list[int]]:
    """Random games up to a position that is not over, with so many empty cells."""
    rng = random.Random(empty)
    found: list[list[int]] = []
    while len(found) < count:
        mine, theirs, columns = 0, 0, []
        while len(columns) < ROWS * COLUMNS - empty:
            quiet = {c: cell for c, cell in solved.moves(mine, theirs).items() if not solved.has_four(mine | cell)}
            if not quiet:
                break
            columns.append(rng.choice(list(quiet)))
            mine, theirs = theirs, mine | quiet[columns[-1]]
        else:
            found.append(columns)
    return found


def played(moves: list[int]) -> ConnectFour:
    game = ConnectFour()
    for move in moves:
        game.play(move)
    return game


def bits(game: ConnectFour) -> tuple[int, int]:
    both = [
        sum(1 << (7 * col + ROWS - 1 - row) for (row, col), owner in game.board.items() if owner == seat)
        for seat in (game.to_play, 1 - game.to_play)
    ]
    return both[0], both[1]


def minimax(game: ConnectFour, seen: dict[Any, int]) -> int:
    """For the player to move, by trying everything."""
    if game.over:
        return game.returns()[game.to_play]
    name = frozenset(game.board.items())
    if name not in seen:
        best = -1
        for action, legal in enumerate(game.legal_actions()):
            if legal and best < 1:
                later = copy(game)
                later.play(action)
                best = max(best, -minimax(later, seen))
        seen[name] = best
    return seen[name]


@pytest.mark.parametrize("empty", [1, 2, 3, 5, 7, 8])
def test_late_positions(empty: int) -> None:
    solver = Solver(entries=1 << 12)  # so small that positions displace each other
    for moves in late_games(12, empty):
        game = played(moves)
        seen: dict[Any, int] = {}
        worths = {}
        for action, legal in enumerate(game.legal_actions()):
            if legal:
                later = copy(game)
                later.play(action)
                worths[action] = -minimax(later, seen)
        assert solver.worths(*bits(game)) == worths
        assert solver.value(*bits(game)) == max(worths.values())
        assert solver.best_moves(*bits(game)) == [c for c, w in worths.items() if w == max(worths.values())]


def test_states_of_the_game() -> None:
    game = make("connect_four")
    for moves in [*late_games(5, 20), [], [3]]:
        assert stones_of(after(game, moves).state) == bits(played(moves))


def test_threats_are_the_cells_that_complete_four() -> None:
    cells = [1 << (7 * col + row) for col in range(COLUMNS) for row in range(ROWS)]
    for moves in late_games(30, 12) + late_games(30, 25):
        mine, theirs = bits(played(moves))
        mask = mine | theirs
        expected = sum(cell for cell in cells if not mask & cell and solved.has_four(mine | cell))
        assert solved._threats(mine, mask) == expected


def test_four_in_a_line() -> None:
    from tests.oracles.connect_four import LINES

    for line in LINES:
        stones = [1 << (7 * col + ROWS - 1 - row) for row, col in line]
        assert solved.has_four(sum(stones))
        for missing in stones:
            assert not solved.has_four(sum(stones) - missing)
    around_the_edge = sum(1 << (7 * col + row) for col, row in ((0, 4), (0, 5), (1, 0), (1, 1)))
    assert not solved.has_four(around_the_edge)


def test_positions_everybody_knows() -> None:
    solver = Solver(entries=1 << 16)
    assert solver.value(*bits(played([2, 2, 3, 3, 4]))) == -1  # three in the bottom row, open on both sides
    assert solver.value(*bits(played([2, 2, 3, 3]))) == 1
    assert solver.value(*bits(played([0, 1, 0, 1, 0, 1]))) == 1


@pytest.mark.slow
def test_the_first_moves() -> None:
    """As Allis and Allen found in 1988: the middle wins, next to it draws, the others lose."""
    pytest.importorskip("numba")  # with it ten minutes, without it half a day
    solver = Solver(entries=1 << 25)
    worth = [solver._worth(0, 0, 1 << 7 * column) for column in (3, 2, 1, 0)]
    assert worth == [1, 0, -1, -1]
