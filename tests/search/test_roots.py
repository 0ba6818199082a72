"""The noise of a search, and searches that begin, or begin anew at other roots, in some of the games only."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from tengen import search
from tengen.config.settings.search import SearchSettings
from tengen.games.core import Game, Observation
from tengen.nets.outputs import Evaluation
from tengen.search.result import SearchResult
from tengen.search.tree import Tree
from tests.helpers import emulator
from tests.helpers.game_recording import jit, make
from tests.helpers.search_plans import ALL_FRILLS, TIC_TAC_TOE
from tests.helpers.search_positions import Played, hashed, roots

MANY = 2000


def begun(settings: SearchSettings, copies: int) -> tuple[Tree, Tree, np.ndarray]:
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
    tree, _, legal = begun(SearchSettings(algorithm="puct", noise_total=4.0), MANY)
    noise, count = tree.noise, legal.sum()
    assert 2 < count < 9
    assert not noise[:, ~legal].any()
    np.testing.assert_allclose(noise.sum(1), 1, rtol=1e-5)
    # Dirichlet with all alphas total / count: mean 1 / count, variance (1 / count) (1 - 1 / count) / (total + 1).
    variance = (1 / count) * (1 - 1 / count) / (4.0 + 1)
    np.testing.assert_allclose(noise[:, legal].mean(0), 1 / count, atol=4 * (variance / MANY) ** 0.5)
    np.testing.assert_allclose(noise[:, legal].var(0), variance, rtol=0.2)


def test_gumbel_noise_has_its_mean_and_spread() -> None:
    tree, _, _ = begun(SearchSettings(algorithm="gumbel", gumbel_scale=3.0), MANY)
    np.testing.assert_allclose(tree.noise.mean(), 3 * np.euler_gamma, rtol=0.05)
    np.testing.assert_allclose(tree.noise.std(), 3 * np.pi / 6**0.5, rtol=0.05)


def test_no_share_and_no_scale_mean_no_noise() -> None:
    for settings in (
        SearchSettings(algorithm="puct", noise_share=0.0),
        SearchSettings(algorithm="gumbel", gumbel_scale=0.0),
    ):
        assert not np.asarray(begun(settings, 2)[0].noise).any()


def test_a_search_begins_only_where_it_is_told() -> None:
    for settings in (SearchSettings(algorithm="puct"), SearchSettings(algorithm="gumbel")):
        before, after, _ = begun(settings, 4)
        assert after.budget.tolist() == [3, 8, 3, 8]
        assert (after.noise == before.noise).all(1).tolist() == [True, False, True, False]


BATCH = 6
PLANS = {
    "puct": (TIC_TAC_TOE, SearchSettings(algorithm="puct", simulations=12, **ALL_FRILLS)),
    "kernels": (
        TIC_TAC_TOE,
        SearchSettings(simulations=12, considered=4, kernels="gpu" if emulator.is_available() else "auto"),
    ),
    "go": (make("go", size=3), SearchSettings(simulations=12, considered=4)),  # which keeps something once per tree
}


@cache
def programs(name: str) -> tuple[Any, Any, Any]:
    """`planted(states)`, `searched(tree, key, which)`, `restarted(tree, states, which)`."""
    game, settings = PLANS[name]

    def searched(tree: Tree, key: Any, which: Any) -> tuple[Tree, SearchResult]:
        tree = search.begin(tree, key, jnp.arange(BATCH) + 7, which)

        def simulate(_: Any, tree: Tree) -> Tree:
            return search.simulate(lambda seen: hashed(seen, game.num_actions, 2.0, 1.0, xp=jnp), tree)

        tree = jax.lax.fori_loop(0, settings.simulations + 2, simulate, tree)
        return tree, search.summarise(tree, key)

    return jit(lambda states: search.plant(game, settings, states)), jit(searched), jit(search.restart)


def same(left: Any, right: Any, which: np.ndarray) -> bool:
    """Whether these games are equal in all leaves [B, ...]."""
    equal = jax.tree.map(lambda a, b: np.array_equal(np.asarray(a)[which], np.asarray(b)[which]), left, right)
    return all(jax.tree.leaves(equal))


def starts(game: Game, seed: int) -> Any:
    """Positions none of which is over (the second of `roots` is)."""
    return jax.tree.map(lambda leaf: leaf[np.r_[0, 2 : BATCH + 1]], roots(game, BATCH + 1, seed))


@pytest.mark.parametrize("name", ["puct", *(pytest.param(name, marks=pytest.mark.slow) for name in ("kernels", "go"))])
def test_a_new_root_is_searched_as_if_there_had_been_no_other(name: str) -> None:
    game, _ = PLANS[name]
    planted, searched, restarted = programs(name)
    every, which = np.ones(BATCH, bool), np.arange(BATCH) % 3 != 1
    old, _ = searched(planted(starts(game, 0)), jax.random.key(1), every)
    # A tree that has moved on has its root, and free slots, somewhere else.
    choice = search.summarise(old, jax.random.key(2)).action
    for before in (old, jit(search.advance)(old, choice, every)):
        fresh = planted(starts(game, 5))
        tree = restarted(before, starts(game, 5), which)
        assert same(tree, before, ~which)
        at = np.arange(BATCH), np.asarray(tree.root)
        assert not np.asarray(tree.visits)[at][which].any()
        assert (np.asarray(tree.child)[at][which] == -1).all()
        assert (np.asarray(tree.parent)[at][which] == -1).all()
        assert not np.asarray(tree.budget)[which].any()
        assert (np.asarray(tree.used)[which] == 1).all()
        assert same(tree.states(tree.root), starts(game, 5), which)
        after, result = searched(tree, jax.random.key(3), which)
        expected_tree, expected = searched(fresh, jax.random.key(3), every)
        assert same(result, expected, which)
        # Slots are taken in the same order, so that all nodes in use are equal too.
        used = np.arange(after.visits.shape[1]) < np.asarray(after.used)[:, None]
        for field in ("child", "logits", "visits", "total", "value", "player", "over", "parent"):
            found, wanted = (np.asarray(getattr(t, field))[used & which[:, None]] for t in (after, expected_tree))
            np.testing.assert_array_equal(found, wanted)
        assert same(after, before, ~which)


def test_restarting_nowhere_changes_nothing() -> None:
    planted, searched, restarted = programs("puct")
    tree, _ = searched(planted(starts(TIC_TAC_TOE, 0)), jax.random.key(1), np.ones(BATCH, bool))
    assert same(restarted(tree, starts(TIC_TAC_TOE, 5), np.zeros(BATCH, bool)), tree, np.ones(BATCH, bool))


@pytest.mark.slow
def test_a_new_root_follows_the_rules_with_all_of_its_past() -> None:
    """Deep nodes of a Go tree know the last eight positions only: superko forbids more once they are roots."""
    game = make("go", size=2, ko="positional", komi=0.5)
    settings = SearchSettings(algorithm="puct", simulations=150, c_init=2.0)
    games, actions = 64, game.num_actions
    weights = np.random.default_rng(0).normal(size=(np.prod(game.planes_shape), actions + 1)).astype(np.float32)

    def sharp(observation: Observation) -> Evaluation:
        """Sure of itself, and unwilling to pass: games are long, trees deep."""
        found = observation.planes.reshape(games, -1).astype(jnp.float32) @ weights
        return Evaluation((4 * found[:, :actions]).at[:, -1].add(-12), 0.1 * jnp.tanh(found[:, actions]))

    @jit
    def move(tree: Tree, key: Array) -> tuple[Tree, Array]:
        every = jnp.ones(games, bool)
        tree = search.finish(sharp, search.begin(tree, key, jnp.full(games, 150), every))
        states = tree.states(tree.root)
        legal = jax.vmap(game.legal_actions)(states)
        result = search.summarise(tree, key, 1.0)
        wrong = (result.visits > 0) & ~legal & ~jax.vmap(game.is_over)(states)[:, None]
        return search.advance(tree, result.action, every), wrong.sum()

    tree = search.plant(game, settings, jax.vmap(game.init)(jax.random.split(jax.random.key(0), games)), slots=700)
    for ply in range(22):
        tree, wrong = move(tree, jax.random.key(ply))
        assert wrong == 0, f"ply {ply}"
