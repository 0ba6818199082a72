"""Random moves are legal and equally likely; random games end with the results that counting them all predicts."""

from copy import copy
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.games.players import draw
from tengen.match.playouts import play_out
from tests.helpers.game_recording import jit, make
from tests.helpers.search_positions import after, stacked
from tests.oracles.tic_tac_toe import TicTacToe

COUNT = 4096


def test_every_legal_move_is_equally_likely() -> None:
    legal = jnp.array([0, 1, 1, 0, 1, 0], bool)
    drawn = np.asarray(jit(draw)(jax.random.key(0), jnp.broadcast_to(legal, (COUNT, 6))))
    shares = np.bincount(drawn, minlength=6) / COUNT
    np.testing.assert_allclose(shares, np.array([0, 1, 1, 0, 1, 0]) / 3, atol=4 * (2 / 9 / COUNT) ** 0.5)
    assert (shares[[0, 3, 5]] == 0).all()


def test_nothing_legal_gives_some_number() -> None:
    assert np.asarray(jit(draw)(jax.random.key(0), jnp.zeros((3, 5), bool))).tolist() == [0, 0, 0]


def expected(game: TicTacToe) -> np.ndarray:
    """The mean result of random games, by trying all of them."""
    if game.over:
        return np.array(game.returns(), float)
    results = []
    for action, legal in enumerate(game.legal_actions()):
        if legal:
            later = copy(game)
            later.play(action)
            results.append(expected(later))
    return np.mean(results, 0)


@pytest.mark.parametrize("moves", [[4, 0], [0, 1, 3], [0, 4, 8, 2, 6, 3]])
def test_results_are_those_of_all_random_games(moves: list[int]) -> None:
    game = make("tic_tac_toe")
    states = jax.tree.map(lambda leaf: np.repeat(leaf, COUNT, 0), stacked([after(game, moves)]))

    def run(states: Any, key: Any) -> Any:
        legal = jax.vmap(game.legal_actions)(states)
        return play_out(game, key, states, legal, jnp.zeros(COUNT, bool))

    results = np.asarray(jit(run)(states, jax.random.key(1)))
    assert set(np.unique(results)) <= {-1.0, 0.0, 1.0}
    slow = TicTacToe()
    for move in moves:
        slow.play(move)
    np.testing.assert_allclose(results.mean(0), expected(slow), atol=4 / COUNT**0.5)


def test_games_that_are_done_have_no_result() -> None:
    game = make("tic_tac_toe")
    states = stacked([after(game, []), after(game, [0, 3, 1, 4, 2])])
    legal = jnp.asarray(jax.vmap(game.legal_actions)(states))
    run = jit(lambda states, legal, done: play_out(game, jax.random.key(0), states, legal, done))
    assert (np.asarray(run(states, legal, jnp.array([True, True]))) == 0).all()
