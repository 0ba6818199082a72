"""Openings are different, playable, reached by their moves, and long enough."""

import jax
import numpy as np
import pytest

from tengen.match.openings import openings
from tests.helpers.game_recording import make
from tests.oracles.tic_tac_toe import TicTacToe


def boards(actions: np.ndarray) -> set[tuple[tuple[int, int], ...]]:
    """The positions after these moves, by slow rules, which refuse what is not legal."""
    found = set()
    for row in actions.tolist():
        game = TicTacToe()
        for action in row:
            game.play(action)
        assert not game.over
        found.add(tuple(sorted(game.board.items())))
    return found


def test_all_different_and_running() -> None:
    start = openings(make("tic_tac_toe"), jax.random.key(0), 40, 2)
    assert start.actions.shape == (40, 2)
    assert len(boards(np.asarray(start.actions))) == 40


def test_longer_where_there_are_too_few() -> None:
    start = openings(make("tic_tac_toe"), jax.random.key(0), 30, 0)
    assert start.actions.shape == (30, 2)  # none has 1 position, one has 9, two have 72
    assert len(boards(np.asarray(start.actions))) == 30


def test_one_game_may_start_from_the_beginning() -> None:
    assert openings(make("tic_tac_toe"), jax.random.key(0), 1, 0).actions.shape == (1, 0)


@pytest.mark.slow
def test_states_and_seeds_belong_to_the_moves() -> None:
    game = make("hironaka", dimension=3, max_points=4)  # begins with random points
    start = openings(game, jax.random.key(3), 6, 2)
    states = jax.vmap(game.init)(jax.random.wrap_key_data(np.asarray(start.seeds)))
    for ply in range(2):
        states = jax.vmap(game.step)(states, start.actions[:, ply])
    for one, other in zip(jax.tree.leaves(states), jax.tree.leaves(start.states), strict=True):
        np.testing.assert_array_equal(one, other)


def test_too_few_take_turns() -> None:
    game = make("tic_tac_toe")
    start = openings(game, jax.random.key(0), 3000, 7)
    found = len(boards(np.asarray(start.actions)))
    assert 100 < found < 3000
    np.testing.assert_array_equal(start.actions[:found], start.actions[found : 2 * found])
    for leaf in jax.tree.leaves(start):
        np.testing.assert_array_equal(leaf[0], leaf[found])
    few = f"has only {found} different openings, which take turns in these 3000 pairs"
    assert start.note(game) == f"tic_tac_toe {few} of games"


def test_games_that_end_within_the_opening() -> None:
    start = openings(make("tic_tac_toe"), jax.random.key(0), 2, 9)  # nine moves end every game
    assert start.actions.shape == (2, 8)
    assert start.note(make("tic_tac_toe")) == ""
