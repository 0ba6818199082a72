"""The noise of a search, and searches that begin in some of the games only."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from recording import jit
from search.plans import TIC_TAC_TOE
from search.positions import Played, roots
from tengen import search
from tengen.search import Settings, Tree

MANY = 2000


def begun(settings: Settings, copies: int) -> tuple[Tree, Tree, np.ndarray]:
    """Searches of the same position many times over, then new ones in every second game; and what is legal there."""
    state = jax.tree.map(lambda leaf: leaf[4], roots(TIC_TAC_TOE, 6))
    states = jax.tree.map(lambda leaf: np.stack([leaf] * copies), state)

    def begin(states: Any, keys: Any) -> tuple[Tree, Tree]:
        tree = search.plant(TIC_TAC_TOE, settings, states, slots=2)
        tree = search.begin(tree, keys[0], jnp.full(copies, 3), jnp.ones(copies, bool))
        return tree, search.begin(tree, keys[1], jnp.full(copies, 8), jnp.arange(copies) % 2 == 1)

    trees = jit(begin)(states, jax.random.split(jax.random.key(0)))
    return *jax.tree.map(np.asarray, trees), Played(TIC_TAC_TOE, state).look.legal


def test_dirichlet_noise_is_for_legal_moves_and_as_concentrated_as_asked() -> None:
    tree, _, legal = begun(Settings(algorithm="puct", noise_total=4.0), MANY)
    noise, count = tree.noise, legal.sum()
    assert 2 < count < 9
    assert not noise[:, ~legal].any()
    np.testing.assert_allclose(noise.sum(1), 1, rtol=1e-5)
    # Dirichlet with all alphas total / count: mean 1 / count, variance (1 / count) (1 - 1 / count) / (total + 1).
    variance = (1 / count) * (1 - 1 / count) / (4.0 + 1)
    np.testing.assert_allclose(noise[:, legal].mean(0), 1 / count, atol=4 * (variance / MANY) ** 0.5)
    np.testing.assert_allclose(noise[:, legal].var(0), variance, rtol=0.2)


def test_gumbel_noise_has_its_mean_and_spread() -> None:
    tree, _, _ = begun(Settings(algorithm="gumbel", gumbel_scale=3.0), MANY)
    np.testing.assert_allclose(tree.noise.mean(), 3 * np.euler_gamma, rtol=0.05)
    np.testing.assert_allclose(tree.noise.std(), 3 * np.pi / 6**0.5, rtol=0.05)


def test_no_share_and_no_scale_mean_no_noise() -> None:
    for settings in (Settings(algorithm="puct", noise_share=0.0), Settings(algorithm="gumbel", gumbel_scale=0.0)):
        assert not np.asarray(begun(settings, 2)[0].noise).any()


def test_a_search_begins_only_where_it_is_told() -> None:
    for settings in (Settings(algorithm="puct"), Settings(algorithm="gumbel")):
        before, after, _ = begun(settings, 4)
        assert after.budget.tolist() == [3, 8, 3, 8]
        assert (after.noise == before.noise).all(1).tolist() == [True, False, True, False]
