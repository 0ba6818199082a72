"""The choice of a move at a temperature."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import search
from tengen.config.settings.search import SearchSettings
from tengen.nets.outputs import Evaluation
from tengen.search.result import SearchResult
from tests.helpers.game_recording import jit, make
from tests.helpers.recorded_search import BATCH, Plan, play
from tests.helpers.search_plans import FULL_PUCT, GUMBEL
from tests.helpers.search_positions import roots

COPIES = 2000


def drawn(plan: Plan, temperatures: list[float]) -> Iterator[tuple[SearchResult, np.ndarray]]:
    """For each temperature the summary of one searched tree, and how often each move was drawn, as a share."""
    recorded = play(plan, roots(plan.game, BATCH))
    tree = jax.tree.map(lambda leaf: np.stack([leaf[0, -1, 0]] * COPIES), recorded.trees)
    summarise: Any = jit(search.summarise)
    for number, temperature in enumerate(temperatures):
        result = summarise(tree, jax.random.key(number), np.float32(temperature))
        first = jax.tree.map(lambda leaf: np.asarray(leaf)[0], result)
        yield first, np.bincount(result.action, minlength=9) / COPIES


def shares(weights: np.ndarray, temperature: float) -> np.ndarray:
    raised = weights.astype(np.float64) ** (1 / temperature)
    return raised / raised.sum()


@pytest.mark.parametrize("plan", [FULL_PUCT, GUMBEL], ids=["puct", "gumbel"])
def test_moves_are_drawn_by_the_policy(plan: Plan) -> None:
    for temperature, (result, found) in zip((1.0, 0.5, 3.0), drawn(plan, [1.0, 0.5, 3.0]), strict=True):
        expected = shares(np.asarray(result.policy), temperature)
        spread = np.sqrt(expected * (1 - expected) / COPIES)
        assert (np.abs(found - expected) <= 4.5 * spread + 1e-9).all()


@pytest.mark.parametrize("plan", [FULL_PUCT, GUMBEL], ids=["puct", "gumbel"])
def test_without_temperature_the_move_does_not_depend_on_the_key(plan: Plan) -> None:
    for result, found in drawn(plan, [0.0, 0.0]):
        assert found[result.action] == 1
        assert result.visits[result.action] == result.visits.max()


@pytest.mark.parametrize("plan", [FULL_PUCT, GUMBEL], ids=["puct", "gumbel"])
def test_the_surprise_is_the_divergence_from_the_networks_policy(plan: Plan) -> None:
    recorded = play(plan, roots(plan.game, BATCH))
    tree = jax.tree.map(lambda leaf: np.asarray(leaf[0, -1]), recorded.trees)
    result = jit(search.summarise)(tree, jax.random.key(0), np.float32(0))
    searched = [number for number, policy in enumerate(np.asarray(result.policy)) if policy.any()]
    assert searched
    for number in searched:
        policy = np.asarray(result.policy[number], np.float64)
        prior = np.exp(tree.logits[number, tree.root[number]].astype(np.float64))
        prior /= prior.sum()
        terms = [p * np.log(p / q) for p, q in zip(policy, prior, strict=True) if p > 0]
        np.testing.assert_allclose(result.surprise[number], sum(terms), rtol=1e-3, atol=1e-5)
    assert np.asarray(result.surprise).max() > 0.01


@pytest.mark.parametrize("algorithm", ["puct", "gumbel"])
def test_no_move_that_ends_the_game_with_a_loss_if_there_is_another(algorithm: Any) -> None:
    """White is behind on an empty board with komi -1, and the network wants to answer a pass with a pass."""
    game = make("go", size=3, komi=-1.0)
    state = game.step(game.init(jax.random.key(0)), jnp.int32(game.num_actions - 1))
    states = jax.tree.map(lambda leaf: leaf[None], state)

    def evaluate(observation: Any) -> Evaluation:
        logits = np.zeros((1, game.num_actions), np.float32)
        logits[:, -1], logits[:, 4] = 20, 5
        return Evaluation(jnp.asarray(logits), -0.999 * jnp.ones(1))

    no_noise = {"noise_share": 0.0, "gumbel_scale": 0.0, "considered": 1}
    settings = SearchSettings(algorithm=algorithm, simulations=8, **no_noise)
    run = partial(search.run, evaluate, game, states, jax.random.key(0), settings)
    quiet, drawn = run(), run(temperature=1e-3)
    assert quiet.visits[0].argmax() == game.num_actions - 1  # the pass
    assert drawn.action[0] == game.num_actions - 1
    assert quiet.action[0] == 4
