"""Connect four against the oracle, and against the published numbers of move sequences."""

import numpy as np
import pytest

from tests.helpers.game_recording import alone, make, record, start
from tests.helpers.perft import perft
from tests.oracles import connect_four as oracle

GAME = make("connect_four")


@pytest.mark.parametrize("seed", range(3))
def test_random_games(seed: int) -> None:
    played = record(GAME, start(GAME), seed)
    for g in range(64):
        game = oracle.ConnectFour()
        for t in range(played.length(g) + 1):
            assert played.legal[t, g].tolist() == game.legal_actions()
            assert (bool(played.over[t, g]), int(played.to_play[t, g])) == (game.over, game.to_play)
            assert tuple(played.returns[t, g]) == game.returns()
            for plane, player in ((1, game.to_play), (2, 1 - game.to_play)):
                stones = played.planes[t, g, ..., plane]
                assert {tuple(at) for at in np.argwhere(stones)} == {p for p, o in game.board.items() if o == player}
            if not game.over:
                game.play(int(played.actions[t, g]))


def test_threats_are_the_empty_cells_that_complete_a_line() -> None:
    game = make("connect_four", observation="threats")
    played = record(game, start(game), seed=5)
    assert played.planes.shape[2:] == (6, 7, 5)
    found = 0
    for g in range(64):
        position = oracle.ConnectFour()
        for t in range(played.length(g)):
            for plane, player in ((3, position.to_play), (4, 1 - position.to_play)):
                stones = {cell for cell, owner in position.board.items() if owner == player}
                lines = (set(line) - stones for line in oracle.LINES)
                wanted = {cell for line in lines if len(line) == 1 for cell in line if cell not in position.board}
                assert {tuple(at) for at in np.argwhere(played.planes[t, g, ..., plane])} == wanted
                found += len(wanted)
            position.play(int(played.actions[t, g]))
    assert found > 1000


def test_strategy_shows_threes_landings_and_rows() -> None:
    game = make("connect_four", observation="strategy")
    played = record(game, start(game), seed=6)
    assert played.planes.shape[2:] == (6, 7, 9)
    found = 0
    for g in range(64):
        position = oracle.ConnectFour()
        for t in range(played.length(g)):
            planes = [{tuple(at) for at in np.argwhere(played.planes[t, g, ..., plane])} for plane in range(9)]
            empty = {(row, column) for row in range(6) for column in range(7)} - set(position.board)
            for plane, player in ((5, position.to_play), (6, 1 - position.to_play)):
                stones = {cell for cell, owner in position.board.items() if owner == player}
                lines = [set(line) - stones for line in oracle.LINES]
                wanted = {cell for line in lines if len(line) == 2 and line <= empty for cell in line}
                assert planes[plane] == wanted
                found += len(wanted)
            assert planes[7] == {(row, column) for row, column in empty if (row + 1, column) not in empty}
            assert planes[8] == {(row, c) for row in range(6) for c in range(7) if row % 2 == 1 - position.to_play}
            position.play(int(played.actions[t, g]))
    assert found > 1000


def test_all_observations_are_one_game() -> None:
    threats = make("connect_four", observation="threats")
    assert threats.for_network({"observation": "threats"}) is threats
    assert threats.for_network({}).planes_shape == (6, 7, 3)
    assert GAME.for_network({}) is GAME
    assert GAME.for_network({"observation": "threats"}).options == threats.options
    assert threats.for_network({"observation": "strategy"}).planes_shape == (6, 7, 9)


def test_perft() -> None:
    assert perft(GAME, 7, chunk=8192) == [7, 49, 343, 2401, 16807, 117649, 823536]


def test_a_full_board_without_four_is_a_draw() -> None:
    # From below, columns 0, 1, 4, 5 begin with x and 2, 3, 6 with o, and alternate.
    pairs = [(0, 2), (1, 3), (4, 6)]
    columns = [column for x, o in pairs for column in [x, *[o] * 6, *[x] * 5]] + [5] * 6
    actions = np.zeros((GAME.max_moves + 2, 64), np.int32)
    actions[: len(columns)] = np.array(columns)[:, None]
    played = record(GAME, start(GAME), actions=actions)
    assert not played.over[41].any()
    assert played.over[42].all()
    assert (played.returns[42] == 0).all()


TEXT = """  1 2 3 4 5 6 7
6 . . . . . . .
5 . . . . . . .
4 . . . . . . .
3 . . . . . . .
2 . . . o . . .
1 o . x x x . o
to play: x"""


def test_text_by_hand() -> None:
    state = GAME.from_text(TEXT)
    assert GAME.render(state) == TEXT
    assert not GAME.is_over(state)
    won, look, *_ = alone(GAME)(state, GAME.parse_action(state, "2"))
    assert look.returns.tolist() == [1, -1]
    again = GAME.from_text(GAME.render(won))
    assert bool(GAME.is_over(again))
    assert GAME.returns(again).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3 . .", "3 x .", "a stone hangs in the air"),
        ("to play: x", "to play: o", "3 and 3 stones do not fit whose turn it is"),
        ("2 . . .", "2 . . x", "4 and 3 stones do not fit whose turn it is"),
        ("1 o . x x x . o", "1 o x x x x o o", "x cannot be to play with four in a line"),
    ],
)
def test_text_that_is_no_position(old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^connect_four: {message}"):
        GAME.from_text(TEXT.replace(old, new))
