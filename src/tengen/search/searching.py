"""A whole search in one compiled loop, with the network inside."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.core import Tracer

from tengen.config.settings.search import SearchSettings
from tengen.games.core import Game, Observation
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
    key: Array,
    settings: SearchSettings,
    budget: Array | None = None,
    temperature: Array | float = 0.0,
    slots: int | None = None,
) -> SearchResult:
    """Search the positions `roots` ([B, ...] each leaf), in one compiled loop with `evaluate` inside.

    `budget` (Int32[B]) gives each game its own number of simulations; `slots` is then the room of a tree, enough for
    `settings.simulations` if not said. Called again with the same `evaluate` (the same object), nothing is compiled
    anew. Inside a function that is being compiled it becomes part of that.
    """
    given = (roots, key, budget, temperature)
    tracing = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(given))
    return (_run if tracing else _compiled)(evaluate, game, settings, slots, *given)


def _run(
    evaluate: Evaluate, game: Game, settings: SearchSettings, slots: int | None,
    roots: Any, key: Array, budget: Array | None, temperature: Array | float,
) -> SearchResult:  # fmt: skip
    search, choose = jax.random.split(key)
    tree = plant(game, settings, roots, slots=slots or settings.simulations + 1)
    batch = tree.root.shape[0]
    same = jnp.full(batch, settings.simulations, jnp.int32)
    tree = begin(tree, search, same if budget is None else budget, jnp.ones(batch, bool))
    if budget is None and settings.leaves == 1:  # all games go together: no need to ask the host whether to go on
        tree = lax.fori_loop(0, settings.simulations + 1, lambda _, tree: simulate(evaluate, tree), tree)
    else:
        tree = finish(evaluate, tree)
    return summarise(tree, choose, temperature)


_compiled = jax.jit(_run, static_argnums=(0, 1, 2, 3))


def unfinished(tree: Tree) -> Array:
    """Bool[B]: which games have not spent their budget."""
    return (tree.done < tree.budget) & (tree.over[jnp.arange(tree.root.shape[0]), tree.root] == 0)


def finish(evaluate: Evaluate, tree: Tree) -> Tree:
    """Simulate until every game has spent its budget. Compile it: `jax.jit(partial(search.finish, evaluate))`."""
    return lax.while_loop(lambda tree: unfinished(tree).any(), partial(simulate, evaluate), tree)


def simulate(evaluate: Evaluate, tree: Tree) -> Tree:
    """One simulation in every game (or several leaves, see `SearchSettings.leaves`)."""
    leaves = select(tree)
    return expand(tree, leaves, evaluate(leaves.observation))
