"""From the root to a leaf. Functions of ONE game's tree; callers `vmap`."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float16, Float32, Int8, Int32

from tengen.search import selection
from tengen.search.tree import NONE, Tree


class WalkPath(NamedTuple):
    """Where the walks through a tree ended."""

    parent: Int32[Array, "*walks"]  # the node to play `action` at; the root if it must be evaluated itself
    action: Int32[Array, "*walks"]
    node: Int32[Array, "*walks"]  # the slot of the leaf: a free one if `fresh`, -1 if there was none
    fresh: Bool[Array, "*walks"]  # the position has not been evaluated
    moves: Bool[Array, "*walks"]  # the position comes from playing `action`; otherwise no move is played
    active: Bool[Array, "*walks"]  # False if the search is over


class NewNode(NamedTuple):
    """What is written for fresh leaves."""

    logits: Float16[Array, "*leaves actions"]  # log of the prior
    state: Any  # `stored`
    value: Float32[Array, "*leaves"]  # for player 0
    apart: Float32[Array, "*leaves parts"]  # what the visit adds to `Tree.apart`
    player: Int8[Array, "*leaves"]
    over: Int8[Array, "*leaves"]


class _Pending(NamedTuple):
    """Earlier walks of the same batch: they count as visits that were lost."""

    visits: Float32[Array, " slots"]
    parent: Int32[Array, " walks"]  # -1 for later walks and those that reached no new leaf
    action: Int32[Array, " walks"]
    node: Int32[Array, " walks"]


def row_at(tree: Tree, node: Int32[Array, ""], pending: _Pending | None) -> selection.NodeRow:
    children = tree.child[node].astype(jnp.int32)
    there, at = children >= 0, jnp.maximum(children, 0)
    sign = 1.0 - 2.0 * tree.player[node]
    visits = jnp.where(there, tree.visits[at], 0).astype(jnp.float32)
    total = jnp.where(there, sign * tree.total[at], 0)
    node_visits, node_total = tree.visits[node].astype(jnp.float32), sign * tree.total[node]
    if pending is not None:
        action = jnp.arange(children.shape[0])
        new = ((pending.parent == node)[:, None] & (pending.action[:, None] == action)).sum(0)
        extra = jnp.where(there, pending.visits[at], 0) + new
        loss = tree.settings.virtual_loss
        visits, total = visits + extra, total - loss * extra
        node_visits = node_visits + pending.visits[node]
    return selection.NodeRow(
        logits=tree.logits[node].astype(jnp.float32),
        visits=visits,
        total=total,
        node_visits=node_visits[None],
        node_value=(node_total / jnp.maximum(tree.visits[node], 1))[None],
        first_value=(sign * tree.value[node])[None],
    )


def choose(tree: Tree, node: Int32[Array, ""], done: Int32[Array, ""], pending: _Pending | None) -> Int32[Array, ""]:
    """The move to follow at an evaluated node; `done` simulations came before this one."""
    row = row_at(tree, node, pending)
    at_root = selection.choice_at_root(row, tree.noise, tree.base, tree.budget, done, tree.settings)
    return jnp.where(node == tree.root, at_root, selection.choice_below(row, tree.settings))


def walk(tree: Tree) -> WalkPath:
    """`settings.leaves` walks through one tree, each treating the ones before it as lost."""
    count = tree.settings.leaves
    slots = tree.visits.shape[0]
    nothing = jnp.full(count, NONE, jnp.int32)
    pending = _Pending(jnp.zeros(slots, jnp.float32), nothing, nothing, nothing)
    evaluated = tree.visits[tree.root] > 0

    def one(carry: tuple[_Pending, Array], index: Array) -> tuple[tuple[_Pending, Array], WalkPath]:
        pending, taken = carry
        active = (tree.done + index < tree.budget) & (tree.over[tree.root] == 0)
        active &= evaluated | (index == 0)
        known = None if count == 1 else pending
        parent, action, leaf, visits = _descend(tree, known, index, active & evaluated)
        twin = (pending.parent == parent) & (pending.action == action)
        new = active & evaluated & (leaf == NONE) & ~twin.any()
        room = tree.used + taken < slots
        slot = jnp.where(room, tree.free[jnp.minimum(tree.used + taken, slots - 1)].astype(jnp.int32), NONE)
        node = jnp.where(new, slot, jnp.where(twin.any(), pending.node[jnp.argmax(twin)], leaf))
        node = jnp.where(evaluated, node, tree.root)
        here = jnp.where(new | twin.any(), parent, NONE)
        pending = _Pending(
            visits,
            pending.parent.at[index].set(here),
            pending.action.at[index].set(action),
            pending.node.at[index].set(node),
        )
        fresh = active & (new | ~evaluated)
        moves = new | (active & twin.any() & (node < 0))  # a twin of a leaf that has no room needs its position, too
        return (pending, taken + (new & room)), WalkPath(parent, action, node, fresh, moves, active)

    return lax.scan(one, (pending, jnp.int32(0)), jnp.arange(count))[1]


def _descend(tree: Tree, pending: _Pending | None, index: Array, active: Array) -> tuple[Array, Array, Array, Array]:
    """(parent, action, leaf or -1 if it is new, pending visits including this walk's)."""
    visits = jnp.zeros(tree.visits.shape[0]) if pending is None else pending.visits.at[tree.root].add(active)
    start = (tree.root, jnp.int32(0), jnp.int32(NONE), visits, active)

    def step(carry: tuple[Array, Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array, Array]:
        node, _, _, visits, _ = carry
        action = choose(tree, node, tree.done + index, pending)
        child = tree.child[node, action].astype(jnp.int32)
        ended = (child >= 0) & (tree.over[child] > 0)
        further = (child >= 0) & ~ended
        if pending is not None:
            visits = visits.at[jnp.where(child >= 0, child, len(visits))].add(1, mode="drop")
        return jnp.where(further, child, node), action, jnp.where(ended, child, NONE), visits, further

    parent, action, leaf, visits, _ = lax.while_loop(lambda carry: carry[4], step, start)
    return parent, action, leaf, visits
