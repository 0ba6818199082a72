"""The compiled programs of an engine, shared by engines with networks of one kind; trees are batches of one."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from tengen import nets, search
from tengen.config.settings.search import SearchSettings
from tengen.games.core import Game, Observation
from tengen.nets.evaluators import Evaluator
from tengen.nets.models import PythonModel
from tengen.search.roots import MovedRoots, move_roots, read_moves
from tengen.search.walk import row_at

LONGEST_LINE = 24
_LINED = 64  # moves whose lines are followed: in chess there are thousands of actions, and few of them legal


class Roots(NamedTuple):
    """The statistics of a root and its moves; values are for the player to move."""

    visits: Array  # Int32[]: of the root, its own evaluation included
    value: Array  # Float32[]
    child_visits: Array  # Int32[A]
    child_value: Array  # Float32[A]: mean, 0 without visits
    prior: Array  # Float32[A]: 0 where not legal
    lines: Array  # Int32[A, L]: how the search expects the game to go on after the most visited moves; -1 for the rest
    used: Array  # Int32[]: positions in the tree


@partial(jax.jit, static_argnames=("game", "settings", "slots"))
def plant(game: Game, settings: SearchSettings, state: Any, slots: int) -> search.Tree:
    return search.plant(game, settings, _batch(state), slots)


@partial(jax.jit, donate_argnames="tree")
def restart(tree: search.Tree, state: Any) -> search.Tree:
    return search.restart(tree, _batch(state), jnp.ones(1, bool))


def advance(tree: search.Tree, action: Array) -> search.Tree:
    return _move(tree, _read_move(tree, action))


@jax.jit
def _read_move(tree: search.Tree, action: Array) -> MovedRoots:
    return read_moves(tree, action[None])


@partial(jax.jit, donate_argnames="tree")
def _move(tree: search.Tree, moved: MovedRoots) -> search.Tree:
    return move_roots(tree, moved, jnp.ones(1, bool))


@partial(jax.jit, donate_argnames="tree")
def prune(tree: search.Tree) -> search.Tree:
    """The tree with room in it."""
    return search.prune(tree)


@partial(jax.jit, static_argnames="evaluate", donate_argnames="tree")
def search_on(evaluate: Evaluator, params: Any, tree: search.Tree, more: Array) -> search.Tree:
    """`more` (Int32[]) visits of the root, of which the first evaluates it if nothing has yet."""
    tree, before = _begin(tree, more)
    target = before + more
    return lax.while_loop(
        lambda tree: tree.visits[0, tree.root[0]] < target, partial(search.simulate, partial(evaluate, params)), tree
    )


def search_by_step(
    evaluate: Evaluator | PythonModel, params: Any, tree: search.Tree, more: int, device: Any, beside: Any
) -> search.Tree:
    """The same for models of other frameworks, or if the tree is on `beside` and the parameters on `device`."""
    ask = evaluate if isinstance(evaluate, PythonModel) else partial(_evaluate, evaluate)
    tree, visits = _begin(tree, jnp.int32(more))
    target = int(visits) + more
    while int(visits) < target:
        leaves = _select(tree)
        said = ask(params, jax.device_put(leaves.observation, device))
        tree, visits = _expand(tree, leaves, jax.device_put(said, beside))
    return tree


@partial(jax.jit, donate_argnames="tree")
def _begin(tree: search.Tree, more: Array) -> tuple[search.Tree, Array]:
    """Without noise this is all of `search.begin`; reading the large tables here would have them copied."""
    visits = tree.visits[0, tree.root[0]]
    # A root's evaluation is no simulation, but needs a budget.
    budget = jnp.maximum(visits + more - jnp.maximum(visits, 1), 1)
    return replace(tree, done=jnp.zeros_like(tree.done), budget=budget[None]), visits


_select = jax.jit(search.select)
_evaluate = jax.jit(lambda evaluate, params, observation: evaluate(params, observation), static_argnums=0)


@partial(jax.jit, donate_argnames="tree")
def _expand(tree: search.Tree, leaves: search.Leaves, said: nets.Evaluation) -> tuple[search.Tree, Array]:
    tree = search.expand(tree, leaves, said)
    return tree, tree.visits[0, tree.root[0]]


@jax.jit
def roots(tree: search.Tree) -> Roots:
    one: search.Tree = jax.tree.map(lambda leaf: leaf[0], tree)
    row = row_at(one, one.root, None)
    evaluated = one.visits[one.root] > 0
    visits = jnp.where(evaluated, row.visits, 0).astype(jnp.int32)
    prior = jnp.where(evaluated & row.legal, jnp.exp(row.logits), 0)
    first = jnp.where(visits > 0, one.child[one.root].astype(jnp.int32), -1)
    most = lax.top_k(visits, min(_LINED, len(visits)))[1]
    lines = jnp.full((len(visits), LONGEST_LINE), -1, jnp.int32)
    return Roots(
        one.visits[one.root],
        row.node_value[0],
        visits,
        jnp.where(visits > 0, row.means, 0),
        prior,
        lines.at[most].set(jax.vmap(partial(_line, one))(most, first[most])),
        one.used,
    )


def _line(tree: search.Tree, action: Array, node: Array) -> Array:
    """Int32[L]: `action`, which leads to `node`, and the most visited moves from there on."""

    def follow(node: Array, _: Any) -> tuple[Array, Array]:
        at = jnp.maximum(node, 0)
        children = tree.child[at].astype(jnp.int32)
        visits = jnp.where(children >= 0, tree.visits[jnp.maximum(children, 0)], 0)
        best = jnp.argmax(visits).astype(jnp.int32)
        known = (node >= 0) & (visits[best] > 0) & (tree.visits[at] > 0) & (tree.over[at] == 0)
        return jnp.where(known, children[best], -1), jnp.where(known, best, -1)

    rest = lax.scan(follow, node, length=LONGEST_LINE - 1)[1]
    return jnp.concatenate([jnp.where(node >= 0, action, -1)[None].astype(jnp.int32), rest])


def look(game: Game, evaluate: Evaluator | PythonModel, params: Any, state: Any) -> tuple[Array, Any]:
    """Bool[A] the legal moves, and what the network says of ONE position: outputs [1, ...]."""
    return (_look if isinstance(evaluate, PythonModel) else _compiled_look)(game, evaluate, params, state)


def _look(game: Game, evaluate: Evaluator | PythonModel, params: Any, state: Any) -> tuple[Array, Any]:
    legal, observation = _seen(game, state)
    return legal, evaluate.outputs(params, observation)


_compiled_look = jax.jit(_look, static_argnames=("game", "evaluate"))


@partial(jax.jit, static_argnames="game")
def _seen(game: Game, state: Any) -> tuple[Array, Observation]:
    """The legal moves and the observation [1, ...] of ONE position."""
    seen = game.look(state)
    return seen.legal, _batch(seen.observation)


def _batch(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], tree)
