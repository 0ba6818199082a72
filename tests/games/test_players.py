"""The simplest players."""

import jax
import jax.numpy as jnp
import numpy as np

from tengen import games
from tengen.games.players import First, Player, Random


def test_first_last_and_random_among_legal_actions() -> None:
    game = games.make("tic_tac_toe")
    state = game.init(jax.random.key(0))
    for action in (0, 8, 3):
        state = game.step(state, jnp.int32(action))
    states = jax.tree.map(lambda leaf: jnp.stack([leaf] * 300), state)
    which = jnp.ones(300, bool)
    asked = [Player("x", rule).ask(jax.random.key(0), states, which) for rule in (First(game), First(game, last=True))]
    assert [set(np.asarray(actions).tolist()) for actions in asked] == [{1}, {7}]
    drawn = Player("random", Random(game)).ask(jax.random.key(0), states, which)
    assert set(np.asarray(drawn).tolist()) == {1, 2, 4, 5, 6, 7}
