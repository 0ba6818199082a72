"""The measuring loop: what it measures really plays."""

import jax
import jax.numpy as jnp
import numpy as np

from tengen import games
from tengen.bench.games import choose, suite


def test_moves_are_legal_and_differ_between_games_and_steps() -> None:
    legal = jnp.asarray(np.random.default_rng(0).random((64, 82)) < 0.3).at[:, -1].set(True)
    first, second = (np.asarray(choose(legal, jnp.int32(step))) for step in (0, 1))
    assert np.asarray(legal)[np.arange(64), first].all()
    assert len(set(first.tolist())) > 30
    assert (first != second).any()
    assert not (first == 81).any(), "pass is chosen only when nothing else is legal"
    only_pass = jnp.zeros((1, 82), bool).at[0, 81].set(True)
    assert choose(only_pass, jnp.int32(5)) == 81


def test_every_case_of_the_suite_can_be_made() -> None:
    for case in suite(8):
        game = games.make(case.game, **case.options)
        state = jax.eval_shape(game.init, jax.random.key(0))
        assert jax.tree.leaves(state)
        assert case.batch == 8
