"""`run` and `finish` with the evaluator inside, against `select` and `expand` with an evaluator in Python."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import search
from tengen.config.settings.search import SearchSettings
from tengen.games.core import Observation
from tengen.nets.outputs import Evaluation
from tengen.search.simulation import Leaves
from tengen.search.tree import Tree
from tests.helpers.game_recording import jit
from tests.helpers.search_plans import TIC_TAC_TOE
from tests.helpers.search_positions import hashed, roots

BATCH = 6


def in_jax(observation: Observation) -> Evaluation:
    return hashed(observation, 9, 2.0, 1.0, xp=jnp)


def in_python(leaves: Leaves) -> Evaluation:
    """Any Python function: here NumPy, one position at a time."""
    seen: list[Any] = [np.asarray(part) for part in leaves.observation]
    each = [hashed(Observation(*(part[i : i + 1] for part in seen)), 9, 2.0, 1.0) for i in range(len(seen[0]))]
    return Evaluation(*(jnp.concatenate(parts) for parts in zip(*each, strict=True)))


def by_hand(tree: Tree) -> Tree:
    """Simulate until nothing is left to do."""
    select, expand = jit(search.select), jit(search.expand)
    over = np.asarray(tree.over)[np.arange(BATCH), tree.root]
    while ((np.asarray(tree.done) < np.asarray(tree.budget)) & ~over).any():
        leaves = select(tree)
        tree = expand(tree, leaves, in_python(leaves))
    return tree


def begun(settings: SearchSettings, budget: np.ndarray, key: Any) -> Tree:
    """Trees about to be searched."""

    def begin(states: Any, key: Any) -> Tree:
        tree = search.plant(TIC_TAC_TOE, settings, states)
        return search.begin(tree, key, jnp.asarray(budget), jnp.ones(BATCH, bool))

    return jit(begin)(roots(TIC_TAC_TOE, BATCH), key)


@pytest.mark.slow
def test_finish_gives_the_tree_of_a_python_evaluator() -> None:
    settings = SearchSettings(algorithm="puct", simulations=16, leaves=3)
    tree = begun(settings, np.array([12, 5, 1, 0, 7, 16], np.int32), jax.random.key(5))
    finished = jit(lambda tree: search.finish(in_jax, tree))(tree)
    for one, other in zip(jax.tree.leaves(by_hand(tree)), jax.tree.leaves(finished), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "budget",
    [
        pytest.param(None, id="as in the settings"),
        pytest.param([12, 5, 1, 0, 7, 40], id="for each game", marks=pytest.mark.slow),
    ],
)
def test_run_gives_the_result_of_a_python_evaluator(budget: list[int] | None) -> None:
    settings, key = SearchSettings(algorithm="gumbel", simulations=max(budget or [16])), jax.random.key(5)
    given = None if budget is None else jnp.array(budget)
    result = jit(lambda states: search.run(in_jax, TIC_TAC_TOE, states, key, settings, given))(
        roots(TIC_TAC_TOE, BATCH)
    )
    budgets = np.array(budget or [settings.simulations] * BATCH)
    # `run` uses the first half of its key for the search.
    tree = by_hand(begun(settings, budgets, jax.random.split(key)[0]))
    for one, other in zip(*map(jax.tree.leaves, (result, jit(search.summarise)(tree, key))), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    budgets[1] = 0  # a finished game
    np.testing.assert_array_equal(result.visits.sum(1), budgets)
