"""Hex against the oracle."""

import numpy as np
import pytest

from tengen.games.core import Game
from tests.helpers.game_recording import ANY, alone, make, new, record, start
from tests.oracles import hex as oracle


def hex_game(size: int, swap: bool = False) -> Game:
    return make("hex", size=size, swap=swap)


def follow(size: int, swap: bool, seed: int, games: int = 64) -> int:
    """Random games step by step; how many of them swapped."""
    game = hex_game(size, swap)
    liking = np.zeros(game.num_actions)
    liking[size * size :] = np.log(size * size)  # as likely as all the points together
    played = record(game, start(game), seed, liking=liking)
    swaps = 0
    for g in range(games):
        other = oracle.Hex(size, swap)
        for t in range(played.length(g) + 1):
            legal = other.legal_actions()
            assert played.legal[t, g].tolist() == legal
            assert int(played.to_play[t, g]) == other.to_play
            assert bool(played.over[t, g]) == (not any(legal))
            assert tuple(played.returns[t, g]) == other.returns()
            assert played.scalars[t, g].tolist() == [other.to_play == 0, swap and other.moves == 1]
            for plane, player in ((1, other.to_play), (2, 1 - other.to_play)):
                stones = played.planes[t, g, ..., plane].reshape(-1).tolist()
                assert stones == [other.board.get(point) == player for point in other.points]
            if any(legal):
                swaps += int(played.actions[t, g]) == other.swap_action
                other.play(int(played.actions[t, g]))
        assert other.over
    return swaps


@pytest.mark.parametrize(("size", "swap"), [(3, True), (4, True), (5, False)])
def test_random_games(size: int, swap: bool) -> None:
    swaps = sum(follow(size, swap, seed) for seed in range(3))
    assert (swaps > 30) == swap


def test_random_games_on_11x11() -> None:
    follow(11, True, 0, games=3)


@pytest.mark.slow
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("size", range(3, 14))
def test_more_random_games(size: int, swap: bool) -> None:
    follow(size, swap, 5, games=64 if size < 7 else 16)


def after(game: Game, moves: list[int]) -> tuple[bool, list[float]]:
    """Whether these moves end the game, and its returns."""
    actions = np.full((game.max_moves + 2, 64), ANY)
    actions[: len(moves)] = np.array(moves)[:, None]
    played = record(game, start(game), actions=actions)
    return bool(played.over[len(moves), 0]), played.returns[len(moves), 0].tolist()


def test_goals_by_hand() -> None:
    game = hex_game(3, swap=True)
    assert after(game, [1, 0, 4, 3, 7]) == (True, [1, -1])  # down the middle column
    assert after(game, [0, 3, 1, 4, 2]) == (False, [0, 0])  # the top row is no goal of player 0
    assert after(game, [0, 3, 1, 4, 2, 5]) == (True, [-1, 1])
    assert after(game, [2, 0, 4, 1, 6]) == (True, [1, -1])  # along the short diagonal
    assert after(game, [0, 1, 4, 3, 8]) == (False, [0, 0])  # the long diagonal does not touch


@pytest.mark.parametrize("point", range(9))
def test_swap_mirrors_the_first_stone(point: int) -> None:
    game = hex_game(3, swap=True)
    row, column = divmod(point, 3)
    state, *_ = alone(game)(new(game), point)
    state, look, to_play, _ = alone(game)(state, 9)
    planes = look.observation.planes
    assert np.argwhere(planes[..., 2]).tolist() == [[column, row]]
    assert not planes[..., 1].any()
    assert to_play == 0
    assert game.action_name(state, 9) == "swap"


def test_a_swapped_stone_counts_for_its_new_edge() -> None:
    """On the left edge after the swap, the stone is half of a connection from left to right."""
    game = hex_game(3, swap=True)
    for first, left in ((0, 0), (1, 3), (2, 6)):  # the top row becomes the left column
        row = left // 3
        moves = [first, 9, (left + 3) % 9, row * 3 + 1, (left + 4) % 9, row * 3 + 2]
        assert after(game, moves) == (True, [-1, 1])


TEXT = """  a b c
1 x . .
 2 . o .
  3 . . .
to play: x
moves: 2"""


def test_text_by_hand() -> None:
    game = hex_game(3)
    state = game.from_text(TEXT)
    assert game.render(state) == TEXT
    assert game.parse_action(state, "c3") == 8


@pytest.mark.parametrize("moves", ["0", "3", "4", "-2", "99", "two", "", "2.0", "9" * 5000])
@pytest.mark.parametrize("swap", [False, True])
def test_text_with_a_wrong_number_of_moves(moves: str, swap: bool) -> None:
    with pytest.raises(ValueError, match=f"^hex: 1 and 1 stones do not go with moves: {moves}$"):
        hex_game(3, swap).from_text(TEXT.replace("moves: 2", f"moves: {moves}"))


def test_text_after_a_swap() -> None:
    """One stone of the second player and none of the first, who is to move."""
    game, text = hex_game(3, swap=True), TEXT.replace("1 x . .", "1 . . .")
    assert game.render(game.from_text(text)) == text
    with pytest.raises(ValueError, match=r"^hex: 0 and 1 stones do not go with moves: 2$"):
        hex_game(3).from_text(text)


def test_text_of_a_won_game() -> None:
    game = hex_game(3)
    state = game.from_text(
        TEXT.replace("2 . o .", "2 x o .").replace("3 . . .", "3 x o .").replace("x\nmoves: 2", "o\nmoves: 5")
    )
    assert bool(game.is_over(state))
    assert game.returns(state).tolist() == [1, -1]
