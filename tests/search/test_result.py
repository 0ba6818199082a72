"""The choice of a move at a temperature."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import search
from tengen.config.settings.search import SearchSettings
from tengen.search.result import SearchResult, lower_bounds
from tengen.search.selection import NodeRow
from tests.helpers.game_recording import jit
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
        if plan is GUMBEL:
            assert result.visits[result.action] == result.visits.max()


def row(visits: list[float], means: list[float]) -> NodeRow:
    one = jnp.zeros(1)
    counts = jnp.array(visits, jnp.float32)
    return NodeRow(jnp.zeros(len(visits)), counts, counts * jnp.array(means), one, one, one)


def test_a_lower_bound_weighs_values_against_visits() -> None:
    some = row([9, 4, 1, 0], [0.1, 0.15, 0.3, 0.0])
    bounds = lower_bounds(some, SearchSettings(lower_bound=0.3))
    np.testing.assert_allclose(bounds, [0.0, 0.0, 0.0, -np.inf], atol=1e-6)
    assert lower_bounds(some, SearchSettings(lower_bound=0.2)).argmax() == 2
    assert lower_bounds(some, SearchSettings(lower_bound=0.6)).argmax() == 0
    np.testing.assert_array_equal(lower_bounds(some, SearchSettings(lower_bound=0.0)), [9, 4, 1, 0])


def test_a_move_that_a_long_search_has_hardly_looked_at_is_not_played() -> None:
    bounds = lower_bounds(row([139, 13, 14, 0], [-0.02, 0.5, -0.4, 0.0]), SearchSettings(lower_bound=0.2))
    assert bounds.argmax() == 0
    assert np.isinf(bounds).tolist() == [False, True, False, True]


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
