"""Searches recorded step by step on the device; tests look at them afterwards with NumPy.

One program per game and settings is compiled: plant, then for several moves begin, simulate (keeping the whole tree
after every step), choose, advance. Tests share programs and vary their inputs, because compiling takes the time.
"""

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tengen import search
from tengen.config.settings.search import SearchSettings
from tengen.games.core import Game
from tengen.search.result import SearchResult
from tengen.search.tree import Tree
from tests.helpers.game_recording import jit
from tests.helpers.search_positions import hashed

BATCH, MOVES = 6, 3  # of every program, so that tests share them
CHOSEN = -1  # in place of a wish


class Plan(NamedTuple):
    """What is compiled."""

    game: Game
    settings: SearchSettings
    slots: int | None = None  # if not given, enough for all moves


class Recorded(NamedTuple):
    """NumPy arrays over M moves and T steps of B games."""

    begun: Tree  # [M, B, ...] before the first step of each move
    trees: Tree  # [M, T, B, ...] after each step
    results: SearchResult  # [M, T, B, ...] what `summarise` says at temperature 0 after each step
    actions: Any  # Int32[M, B]: the moves made
    left: Tree  # [M, B, ...] after them


@cache
def _program(plan: Plan) -> Any:
    game, settings = plan.game, plan.settings
    steps = -(-settings.simulations // settings.leaves) + 2  # one more than it takes

    def program(states: Any, evaluator: tuple[Any, Any], given: Any) -> Recorded:
        def step(tree: Tree, _: None) -> tuple[Tree, tuple[Tree, SearchResult]]:
            leaves = search.select(tree)
            tree = search.expand(tree, leaves, hashed(leaves.observation, game.num_actions, *evaluator, xp=jnp))
            return tree, (tree, search.summarise(tree, jax.random.key(0)))

        def move(tree: Tree, given: Any) -> tuple[Tree, Recorded]:
            key, budget, begins, noise, advances, wishes = given
            begun = search.begin(tree, key, budget, begins)
            begun = replace(begun, noise=jnp.where(jnp.isnan(noise), begun.noise, noise))
            tree, (trees, results) = jax.lax.scan(step, begun, None, length=steps)
            legal = jax.vmap(game.legal_actions)(tree.states(tree.root)).astype(jnp.int32)
            wanted = jnp.argmax(legal.cumsum(1) * legal == 1 + (wishes % legal.sum(1).clip(1))[:, None], 1)
            actions = jnp.where(wishes < 0, results.action[-1], wanted).astype(jnp.int32)
            left = search.advance(tree, actions, advances)
            return left, Recorded(begun, trees, results, actions, left)

        slots = plan.slots or MOVES * settings.simulations + 1
        return jax.lax.scan(move, search.plant(game, settings, states, slots), given)[1]

    return jit(program)


def play(
    plan: Plan,
    states: Any,
    budgets: np.ndarray | None = None,
    seed: int = 0,
    begins: np.ndarray | None = None,
    advances: np.ndarray | None = None,
    wishes: np.ndarray | None = None,
    noise: np.ndarray | None = None,
    evaluator: tuple[float, float] = (2.0, 1.0),
) -> Recorded:
    """Search with `budgets` Int32[M, B] in the games `begins` Bool[M, B], then move in the games `advances` Bool[M, B].

    The move is the one that the search chose, or where `wishes` Int32[M, B] is not negative the legal move with that
    number. `noise` Float32[M, B, A] replaces what was drawn. `evaluator`: the sharpness and weight that `hashed` takes.
    """
    every = np.ones((MOVES, BATCH), bool)
    simulations = np.full((MOVES, BATCH), plan.settings.simulations)
    nothing = np.full((MOVES, BATCH, plan.game.num_actions), np.nan)
    given = (
        jax.random.split(jax.random.key(seed), MOVES),
        (simulations if budgets is None else budgets).astype(np.int32),
        every if begins is None else begins,
        (nothing if noise is None else noise).astype(np.float32),
        every if advances is None else advances,
        (np.full((MOVES, BATCH), CHOSEN) if wishes is None else wishes).astype(np.int32),
    )
    weights = np.float32(evaluator[0]), np.float32(evaluator[1])
    return jax.tree.map(np.asarray, _program(plan)(states, weights, given))


def reachable(tree: Tree, at: tuple[int, ...]) -> list[int]:
    """The nodes of one tree, found from its root; `at` says which of the recorded trees."""
    found = [int(tree.root[at])]
    for node in found:
        children = tree.child[at][node]
        found.extend(children[children >= 0].tolist())
    return found
