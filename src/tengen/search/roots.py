"""Starting a search at the root, advancing the root with the real game, and freeing room in full trees."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float16, Int, Int32

from tengen.games.batching import choose
from tengen.games.core import PositionInfo, RandomKey
from tengen.search import gpu, points
from tengen.search.selection import PerMove, PerNode
from tengen.search.tree import NONE, Tree, parts, stored
from tengen.search.walk import row_at

TRIES = 5  # each is accepted with a probability above 0.95, so fewer than one draw in a million is not exact


def begin(tree: Tree, key: RandomKey, budget: Int32[Array, " batch"], which: Bool[Array, " batch"]) -> Tree:
    """Starts a search of `budget` simulations at the roots of the games `which`, with new noise."""
    batch = tree.root.shape[0]
    evaluated = tree.visits[jnp.arange(batch), tree.root] > 0
    base = jax.vmap(lambda one: row_at(one, one.root, None).visits)(tree).astype(jnp.int32)
    base = jnp.where(evaluated[:, None], base, 0)
    return replace(
        tree,
        noise=jnp.where(which[:, None], _noise(tree, key), tree.noise),
        base=jnp.where(which[:, None], base, tree.base),
        done=jnp.where(which, 0, tree.done),
        budget=jnp.where(which, budget, tree.budget),
    )


def _noise(tree: Tree, key: RandomKey) -> PerMove:
    """Gumbel noise, or Dirichlet noise over the legal moves of each root."""
    settings, shape = tree.settings, tree.noise.shape
    if settings.algorithm == "gumbel":
        return settings.gumbel_scale * jax.random.gumbel(key, shape)
    if settings.noise_share == 0:
        return jnp.zeros(shape)
    legal = jax.vmap(tree.game.legal_actions)(tree.states(tree.root))
    return dirichlet(key, settings.noise_total / jnp.maximum(legal.sum(1, keepdims=True), 1), legal)


def dirichlet(key: RandomKey, concentration: PerNode, wanted: Bool[Array, "batch actions"]) -> PerMove:
    """A Dirichlet draw for each row over the entries `wanted`, 0 elsewhere.

    Marsaglia and Tsang's method with a fixed number of tries: `jax.random.gamma` loops until the last of all entries
    is accepted, which takes longer on a GPU than the simulations it is for.
    """
    normal, uniform, last = jax.random.split(key, 3)
    shape = (TRIES, *wanted.shape)
    d = concentration + 1 - 1 / 3
    x = jax.random.normal(normal, shape)
    v = (1 + x / jnp.sqrt(9 * d)) ** 3
    safe = jnp.where(v > 0, v, 1)
    accepted = (v > 0) & (jnp.log(jax.random.uniform(uniform, shape)) < 0.5 * x**2 + d - d * safe + d * jnp.log(safe))
    accepted = accepted.at[-1].set(True)
    first = jnp.argmax(accepted, 0)
    drawn = jnp.take_along_axis(safe, first[None], 0)[0]
    # A power of a uniform number turns a draw for a + 1 into one for a; in logarithms, because those powers underflow.
    power = jnp.log(jax.random.uniform(last, wanted.shape, minval=jnp.finfo(jnp.float32).tiny)) / concentration
    logs = jnp.where(wanted, jnp.log(d * drawn) + power, -jnp.inf)
    highest = jnp.max(logs, 1, keepdims=True, initial=jnp.finfo(jnp.float32).min)
    weights = jnp.exp(logs - highest)
    return weights / jnp.maximum(weights.sum(1, keepdims=True), jnp.finfo(jnp.float32).tiny)


def restart(tree: Tree, states: Any, which: Bool[Array, " batch"]) -> Tree:
    """Puts new positions `states` [batch, ...] at the roots of the games `which`, whose trees are discarded."""
    slots, chosen = tree.visits.shape[1], partial(choose, which)
    over, nodes = jax.vmap(tree.game.is_over)(states), jnp.where(which, 0, slots)
    return replace(
        _with_roots(tree, states, over, nodes, which, logits=-jnp.inf, parent=NONE),
        free=chosen(jnp.arange(slots, dtype=tree.free.dtype), tree.free),
        used=chosen(1, tree.used),
        root=chosen(0, tree.root),
        noise=chosen(0, tree.noise),
    )


def _with_roots(tree: Tree, states: Any, over: Array, nodes: Array, which: Array, **more: float) -> Tree:
    """New positions [batch, ...] in the games `which`, whose searches end, and new roots for them in the slots `nodes`.

    Only the rows of roots are written, so that no table is copied: those of unused slots have no meaning. `more` are
    numbers for the rows of other tables.
    """
    inner, kept = jax.vmap(tree.game.split)(states)
    new: dict[str, Any] = {"child": NONE, "visits": 0, "total": 0, "value": 0, "apart": 0, **more}
    new |= {"player": jax.vmap(tree.game.to_play)(states), "over": over, "state": stored(inner)}
    tables, structure = jax.tree.flatten({name: getattr(tree, name) for name in new})
    values = structure.flatten_up_to(new)
    real = [k for k, table in enumerate(tables) if table.size]  # some positions and trees do without some tables
    numbers = [values[k] if isinstance(values[k], float | int) else None for k in real]
    rows = [jnp.asarray(values[k], tables[k].dtype) for k, number in zip(real, numbers, strict=True) if number is None]
    put = gpu.by_device(tree, partial(_put_rows, numbers), partial(gpu.put_rows, tree, numbers))
    for k, table in zip(real, put(nodes, [tables[k] for k in real], rows), strict=True):
        tables[k] = table
    chosen = partial(choose, which)
    return replace(
        tree,
        **jax.tree.unflatten(structure, tables),
        kept=jax.tree.map(chosen, kept, tree.kept),
        done=chosen(0, tree.done),
        budget=chosen(0, tree.budget),
        base=chosen(0, tree.base),
    )


def _put_rows(
    numbers: Sequence[float | None], nodes: Int32[Array, " batch"], tables: Sequence[Array], rows: Sequence[Array]
) -> list[Array]:
    """`gpu.put_rows` in plain JAX."""
    at, given = (jnp.arange(len(nodes)), nodes), iter(rows)
    news = (next(given) if number is None else number for number in numbers)
    return [table.at[at].set(new, mode="drop") for table, new in zip(tables, news, strict=True)]


class MovedRoots(NamedTuple):
    """What `advance` reads of the large tables, for each game of a batch."""

    states: Any  # the positions after the moves
    look: PositionInfo  # at them
    root: Int32[Array, " batch"]  # the node of the new root, if it is in the tree
    known: Bool[Array, " batch"]  # it is
    children: Int[Array, "batch actions"]  # of that node
    logits: Float16[Array, "batch actions"]


def advance(tree: Tree, actions: Int32[Array, " batch"], which: Bool[Array, " batch"]) -> Tree:
    """Plays `actions` in the games `which`: the subtree below the move becomes the tree, and the rest is freed.

    A move that is not in the tree leaves a root that waits for its evaluation. So does a move after which the expected
    score is far from the tree's centre, because all utilities of a tree refer to one. The search ends: see `begin`.
    """
    return move_roots(tree, read_moves(tree, actions), which)


def read_moves(tree: Tree, actions: Int32[Array, " batch"]) -> MovedRoots:
    """The first half of `advance`, which reads.

    On a CPU, XLA copies whole tables if one program reads some of their rows and writes others. Where trees are large,
    the halves are programs of their own.
    """
    states, look = tree.game.step_and_look(tree.states(tree.root), actions)
    batch = jnp.arange(len(actions))
    child = tree.child[batch, tree.root, actions].astype(jnp.int32)
    known = (child >= 0) & (tree.visits[batch, tree.root] > 0)
    if parts(tree.settings):
        expected = tree.apart[batch, child, 1] / jnp.maximum(tree.visits[batch, child], 1)
        known &= jnp.abs(points.centre(expected, tree.game) - tree.centre) <= points.scale(tree.game)
    root = jnp.where(known, child, tree.root)
    return MovedRoots(states, look, root, known, tree.child[batch, root], tree.logits[batch, root])


def move_roots(tree: Tree, moved: MovedRoots, which: Bool[Array, " batch"]) -> Tree:
    """The second half of `advance`, which writes."""
    slots, known, chosen = tree.visits.shape[1], moved.known, partial(choose, which)
    batch = jnp.arange(len(which))
    root = jnp.where(which, moved.root, tree.root)
    tree = _without_illegal(tree, moved, which & known)
    keep = jnp.where(known[:, None], jax.vmap(_below)(tree, root), jnp.arange(slots) == root[:, None])
    # A root that is not in the tree is written anew.
    unknown, at = jnp.where(which & ~known, root, slots), (batch, jnp.where(which, root, slots))
    return replace(
        _with_roots(tree, moved.states, moved.look.over, unknown, which),
        root=root,
        free=chosen(jax.vmap(_kept_first)(keep, tree.free), tree.free),
        used=chosen(keep.sum(1, dtype=jnp.int32), tree.used),
        parent=tree.parent.at[at].set(NONE, mode="drop"),
    )


def _without_illegal(tree: Tree, moved: MovedRoots, which: Array) -> Tree:
    """Cuts off the moves of new roots that are not legal after all.

    A node deep in a tree knows only part of its history, and superko forbids more once all of it is known.
    """
    batch, slots = jnp.arange(len(which)), tree.visits.shape[1]
    children, legal = moved.children, moved.look.legal
    gone = jnp.where(which[:, None] & ~legal & (children >= 0), children, slots)
    at = batch, jnp.where(which, moved.root, slots)
    return replace(
        tree,
        parent=tree.parent.at[batch[:, None], gone].set(NONE, mode="drop"),
        child=tree.child.at[at].set(jnp.where(legal, children, NONE).astype(tree.child.dtype), mode="drop"),
        logits=tree.logits.at[at].set(jnp.where(legal, moved.logits, -jnp.inf), mode="drop"),
    )


def _below(tree: Tree, root: Int32[Array, ""]) -> Bool[Array, " slots"]:
    slots = tree.visits.shape[0]
    index, in_use = jnp.arange(slots), _in_use(tree)
    parent = jnp.where(in_use & (index != root) & (tree.parent >= 0), tree.parent, index).astype(jnp.int32)

    # Following parents of parents finds every node's topmost ancestor, or `root` if that comes first. This many rounds
    # are enough for any tree; a loop that ends early would make the device wait for the host.
    for _ in range(slots.bit_length()):
        parent = parent[parent]
    return in_use & (parent == root)


def _in_use(tree: Tree) -> Bool[Array, " slots"]:
    slots = tree.visits.shape[0]
    return jnp.zeros(slots, bool).at[tree.free].set(jnp.arange(slots) < tree.used)


def _kept_first(keep: Bool[Array, " slots"], free: Int[Array, " slots"]) -> Int[Array, " slots"]:
    """All slots in the type of `free`, those to keep first."""
    place = jnp.where(keep, jnp.cumsum(keep), keep.sum() + jnp.cumsum(~keep)) - 1
    return jnp.zeros_like(free).at[place].set(jnp.arange(len(free), dtype=free.dtype))


def prune(tree: Tree) -> Tree:
    """Frees at least half of every tree. The least visited nodes go; the search finds them again if they matter.

    The statistics of the nodes above stay. A node has no more visits than its parent, so whole subtrees go. The choices
    stored by GPU programs (`Tree.onward`) are not updated: this is for `SearchSettings.kernels` `plain`, and for trees
    of several leaves.
    """
    return jax.vmap(_prune)(tree)


def _prune(tree: Tree) -> Tree:
    slots, in_use = tree.visits.shape[0], _in_use(tree)
    visits = jnp.where(in_use, tree.visits, 0)
    # The visits of the first node outside the better half; nodes with as many visits go too.
    limit = jnp.sort(visits, descending=True)[slots // 2]
    keep = in_use & ((visits > limit) | (jnp.arange(slots) == tree.root))
    child = jnp.where((tree.child >= 0) & keep[jnp.maximum(tree.child, 0)], tree.child, NONE)
    return replace(tree, child=child, free=_kept_first(keep, tree.free), used=keep.sum(dtype=jnp.int32))
