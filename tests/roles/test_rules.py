import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import games
from tengen.errors import OptionError
from tengen.games.hironaka import Hironaka, zeillinger
from tengen.roles import rules


@pytest.mark.slow
def test_the_hosts_of_hironakas_game_have_names() -> None:
    game = games.make("hironaka", dimension=3, max_points=5)
    assert isinstance(game, Hironaka)
    keys = jax.random.split(jax.random.key(0), 16)
    states = jax.vmap(game.init)(keys)
    host = rules.parse("zeillinger", game, "host")
    chosen = host.choose(jax.random.key(1), states, jnp.ones(16, bool))
    expected = [zeillinger(game, keys[0], jax.tree.map(lambda leaf, n=n: leaf[n], states)) for n in range(16)]
    np.testing.assert_array_equal(chosen, expected)


def test_other_games_do_not_know_them() -> None:
    with pytest.raises(OptionError, match="random, first"):
        rules.parse("zeillinger", games.make("tic_tac_toe"), "host")


def test_hosts_are_no_agents() -> None:
    game = games.make("hironaka", dimension=3, max_points=5)
    with pytest.raises(OptionError, match="zeillinger.*: no agent has that name, expected one of random, first, last"):
        rules.parse("zeillinger", game, "agent")
    assert rules.parse("random", game, "agent").name == "random"


def test_names_that_are_too_long() -> None:
    with pytest.raises(OptionError, match="no host has that name"):
        rules.parse("x" * 900, games.make("hironaka"), "host")
