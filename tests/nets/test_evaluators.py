"""A network as players ask it: the same numbers, and one program for all networks of a spec."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import nets
from tengen.config.settings.search import SearchSettings
from tengen.match import players
from tengen.match.players import network
from tengen.nets.evaluators import evaluator
from tests.helpers.game_recording import make


def small(seed: int) -> nets.Network:
    return nets.fold(nets.build(nets.spec("b1c8"), make("tic_tac_toe"), nnx.Rngs(seed), dtype="float32"))


def test_values_are_the_chances_to_win_less_those_to_lose() -> None:
    game, net = make("tic_tac_toe"), small(0)
    observation = jax.vmap(game.observe)(jax.vmap(game.init)(jax.random.split(jax.random.key(0), 3)))
    evaluate, params = evaluator(net)
    found, outputs = evaluate(params, observation), net(observation.planes, observation.scalars)
    np.testing.assert_array_equal(found.logits, outputs.policy)
    chances = np.exp(np.asarray(outputs.value, np.float64))
    chances /= chances.sum(1, keepdims=True)
    np.testing.assert_allclose(found.value, chances[:, 0] - chances[:, 2], atol=1e-6)


def test_networks_of_one_spec_share_their_rule() -> None:
    game, settings = make("tic_tac_toe"), SearchSettings(simulations=4)
    one, other = (network("net", *evaluator(small(seed))[:1], game, settings) for seed in (0, 1))
    assert one.rule == other.rule
    assert hash(one.rule) == hash(other.rule)
    assert one.rule != players.network("net", evaluator(small(0))[0], game, SearchSettings(simulations=5)).rule


@pytest.mark.slow
def test_a_network_chooses_with_the_parameters_it_is_given() -> None:
    game = make("tic_tac_toe")
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))
    actions = []
    for seed in range(4):
        evaluate, params = evaluator(small(seed))
        actions.append(
            players.policy("net", evaluate, game, params).choose(jax.random.key(0), states, jnp.ones(2, bool))
        )
        seen = jax.vmap(game.observe)(states)
        assert actions[-1].tolist() == np.argmax(evaluate(params, seen).logits, 1).tolist()
    assert len({tuple(chosen.tolist()) for chosen in actions}) > 1
