"""A whole search in one compiled loop, with the network inside."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int32

from tengen.config.settings.search import SearchSettings
from tengen.games.core import Game, Observation, RandomKey
from tengen.nets.outputs import Evaluation
from tengen.search.leaves import expand, select
from tengen.search.result import SearchResult, summarise
from tengen.search.roots import begin
from tengen.search.tree import Tree, plant

Evaluate = Callable[[Observation], Evaluation]


def run(
    evaluate: Evaluate,
    game: Game,
    roots: Any,
    key: RandomKey,
    settings: SearchSettings,
    budget: Int32[Array, " batch"] | None = None,
    temperature: Float[Array, "*#batch"] | float = 0.0,
    slots: int | None = None,
) -> SearchResult:
    """Searches the positions `roots` [batch, ...], in one compiled loop with `evaluate` inside.

    `budget` gives each game its own number of simulations; `slots` is then the size of a tree, by default enough for
    `settings.simulations`. Further calls with the same `evaluate` (the same object) do not compile again. Inside a
    function that is being compiled the search becomes part of that function.
    """
    given = (roots, key, budget, temperature)
    tracing = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(given))
    return (_run if tracing else _compiled)(evaluate, game, settings, slots, *given)


def _run(
    evaluate: Evaluate, game: Game, settings: SearchSettings, slots: int | None,
    roots: Any, key: RandomKey, budget: Array | None, temperature: Array | float,
) -> SearchResult:  # fmt: skip
    search, choose = jax.random.split(key)
    tree = plant(game, settings, roots, slots=slots or settings.simulations + 1)
    batch = tree.root.shape[0]
    same = jnp.full(batch, settings.simulations, jnp.int32)
    tree = begin(tree, search, same if budget is None else budget, jnp.ones(batch, bool))
    if budget is None and settings.leaves == 1:  # all games end together, so the host need not decide when
        tree = lax.fori_loop(0, settings.simulations + 1, lambda _, tree: simulate(evaluate, tree), tree)
    else:
        tree = finish(evaluate, tree)
    return summarise(tree, choose, temperature)


_compiled = jax.jit(_run, static_argnums=(0, 1, 2, 3))


def unfinished(tree: Tree) -> Bool[Array, " batch"]:
    """The games that have not spent their budget."""
    return (tree.done < tree.budget) & (tree.over[jnp.arange(tree.root.shape[0]), tree.root] == 0)


def finish(evaluate: Evaluate, tree: Tree) -> Tree:
    """Simulates until every game has spent its budget. Compile it: `jax.jit(partial(search.finish, evaluate))`."""
    return lax.while_loop(lambda tree: unfinished(tree).any(), partial(simulate, evaluate), tree)


def simulate(evaluate: Evaluate, tree: Tree) -> Tree:
    """One simulation in every game (or several leaves, see `SearchSettings.leaves`)."""
    leaves = select(tree)
    return expand(tree, leaves, evaluate(leaves.observation))
