"""The solver against plain minimax by slow rules, for every position there is."""

from functools import cache

from tengen.games.tic_tac_toe import TicTacToeState
from tests.oracles import tic_tac_toe_solver as solved
from tests.oracles.tic_tac_toe import TicTacToe

Board = tuple[tuple[int, int], ...]


def positions() -> dict[Board, TicTacToe]:
    """Every position that can be reached."""
    found: dict[Board, TicTacToe] = {}
    waiting = [TicTacToe()]
    while waiting:
        game = waiting.pop()
        name = tuple(sorted(game.board.items()))
        if name not in found:
            found[name] = game
            waiting += game.replies().values()
    return found


@cache
def minimax(name: Board) -> int:
    """For the player to move."""
    game = ALL[name]
    if game.over:
        return game.returns()[game.to_play]
    return max(-minimax(tuple(sorted(later.board.items()))) for later in game.replies().values())


ALL = positions()


def test_every_position() -> None:
    assert len(ALL) == 5478  # as the books count them
    for name, game in ALL.items():
        stones = [sum(1 << point for point, owner in name if owner == seat) for seat in (0, 1)]
        assert solved.value(stones[game.to_play], stones[1 - game.to_play]) == minimax(name)
        if not game.over:
            later = {action: -minimax(tuple(sorted(g.board.items()))) for action, g in game.replies().items()}
            best = [action for action, worth in later.items() if worth == max(later.values())]
            assert solved.best_moves(TicTacToeState(stones, game.to_play)) == best
