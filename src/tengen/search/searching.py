"""A whole search in one compiled loop, with the network inside."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from tengen.games import Game, Observation
from tengen.search.leaves import Evaluation, expand, select
from tengen.search.result import Result, summarise
from tengen.search.roots import begin
from tengen.search.settings import Settings
from tengen.search.tree import Tree, plant

Evaluate = Callable[[Observation], Evaluation]


def run(
    evaluate: Evaluate,
    game: Game,
    roots: Any,
    key: Array,
    settings: Settings,
    budget: Array | None = None,
    temperature: Array | float = 0.0,
) -> Result:
    """Search the positions `roots` ([B, ...] each leaf); `budget` (Int32[B]) overrides the number of simulations."""
    search, choose = jax.random.split(key)
    tree = plant(game, settings, roots, slots=settings.simulations + 1 if budget is None else None)
    batch = tree.root.shape[0]
    budget = jnp.full(batch, settings.simulations, jnp.int32) if budget is None else budget
    tree = begin(tree, search, budget, jnp.ones(batch, bool))
    if settings.leaves == 1:  # as far as all games go together, the device need not ask the host whether to go on
        tree = lax.fori_loop(0, settings.simulations + 1, lambda _, tree: simulate(evaluate, tree), tree)
    return summarise(finish(evaluate, tree), choose, temperature)


def finish(evaluate: Evaluate, tree: Tree) -> Tree:
    """Simulate until every game has spent its budget."""

    def unfinished(tree: Tree) -> Array:
        roots = jnp.arange(tree.root.shape[0]), tree.root
        return ((tree.done < tree.budget) & (tree.over[roots] == 0)).any()

    return lax.while_loop(unfinished, partial(simulate, evaluate), tree)


def simulate(evaluate: Evaluate, tree: Tree) -> Tree:
    """One simulation in every game (or several leaves, see `Settings.leaves`)."""
    leaves = select(tree)
    return expand(tree, leaves, evaluate(leaves.observation))
