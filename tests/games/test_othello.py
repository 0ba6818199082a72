"""Othello against the oracle, and against the published numbers of move sequences."""

import numpy as np
import pytest

from tests.helpers.game_recording import ANY, alone, make, record, start
from tests.helpers.perft import perft
from tests.oracles import othello as oracle

GAME = make("othello")


@pytest.mark.parametrize("seed", range(2))
def test_random_games(seed: int) -> None:
    played = record(GAME, start(GAME), seed)
    passes = 0
    for g in range(64):
        game = oracle.Othello()
        for t in range(played.length(g) + 1):
            legal = game.legal_actions()
            assert played.legal[t, g].tolist() == legal
            assert int(played.to_play[t, g]) == game.to_play
            for plane, player in ((1, game.to_play), (2, 1 - game.to_play)):
                stones = played.planes[t, g, ..., plane].reshape(-1).tolist()
                assert stones == [game.board.get(point) == player for point in oracle.POINTS]
            assert bool(played.over[t, g]) == (not any(legal))
            if any(legal):
                passes += legal[oracle.PASS]
                game.play(int(played.actions[t, g]))
        assert game.over
        assert tuple(played.returns[played.length(g), g]) == game.returns()
    assert passes > 5


@pytest.mark.slow
def test_perft() -> None:
    assert perft(GAME, 7, chunk=2048) == [4, 12, 56, 244, 1396, 8200, 55092]


@pytest.mark.slow
def test_deeper_perft() -> None:
    assert perft(GAME, 9, chunk=8192) == [4, 12, 56, 244, 1396, 8200, 55092, 390216, 3005288]


def test_shortest_game_by_hand() -> None:
    moves = ["e6", "f4", "e3", "f6", "g5", "d6", "e7", "f5", "c5"]  # Dark takes every stone
    actions = np.full((GAME.max_moves + 2, 64), ANY)
    for t, (column, row) in enumerate(moves):
        actions[t, 0] = 8 * (int(row) - 1) + "abcdefgh".index(column)
        assert GAME.action_name(None, int(actions[t, 0])) == column + row
    played = record(GAME, start(GAME), actions=actions)
    assert played.length(0) == len(moves)
    assert played.returns[len(moves), 0].tolist() == [1, -1]
    assert played.planes[len(moves), 0, ..., 1].sum() == 0
    assert played.planes[len(moves), 0, ..., 2].sum() == 13


ONE_WAY = """  a b c d e f g h
1 x o . . . . . .
2 . . . . . . . .
3 . . . . . . . .
4 . . . . . . . .
5 . . . . . . . .
6 . . . . . . . .
7 . . . . . . . .
8 . . . . . . . .
to play: light"""


def test_passing_is_forced_and_only_forced() -> None:
    state = GAME.from_text(ONE_WAY)
    assert GAME.render(state) == ONE_WAY
    assert GAME.parse_action(state, "PASS") == 64
    state, look, *_ = alone(GAME)(state, 64)
    assert np.flatnonzero(look.legal).tolist() == [2]
    with pytest.raises(ValueError, match="othello: pass: that move is not legal here"):
        GAME.parse_action(state, "pass")
    state, look, *_ = alone(GAME)(state, 2)
    assert bool(look.over)
    assert look.returns.tolist() == [1, -1]


def test_equal_stones_are_a_draw() -> None:
    state = GAME.from_text(ONE_WAY.replace("1 x o", "1 x .").replace("8 . .", "8 . o"))
    assert bool(GAME.is_over(state))
    assert GAME.returns(state).tolist() == [0, 0]
    assert not GAME.legal_actions(state).any()
