"""Room in trees that are full: the least visited positions go."""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array

from tengen.search.tree import NONE, Tree


def prune(tree: Tree) -> Tree:
    """Free at least half of every tree: what has the fewest visits is forgotten, and found again if it matters.

    Nodes keep what was learned below them. A node has no more visits than its parent, so whole subtrees go. The
    positions kept by GPU programs (`Tree.onward`) are not looked after: this is for `Settings.kernels` `plain`, and for
    trees of several leaves.
    """
    return jax.vmap(_prune)(tree)


def _prune(tree: Tree) -> Tree:
    slots = tree.visits.shape[0]
    index = jnp.arange(slots)
    in_use = jnp.zeros(slots, bool).at[tree.free].set(index < tree.used)
    visits = jnp.where(in_use, tree.visits, 0)
    # The visits of the first node that has no place in the better half; equals go with it.
    limit = jnp.sort(visits, descending=True)[slots // 2]
    keep = in_use & ((visits > limit) | (index == tree.root))
    place = jnp.where(keep, jnp.cumsum(keep), keep.sum() + jnp.cumsum(~keep)) - 1
    return replace(
        tree,
        child=_without(tree.child, keep),
        free=jnp.zeros_like(tree.free).at[place].set(index.astype(tree.free.dtype)),
        used=keep.sum(dtype=jnp.int32),
    )


def _without(child: Array, keep: Array) -> Array:
    """Int16[N, A]: the children that are kept."""
    return jnp.where((child >= 0) & keep[jnp.maximum(child, 0)], child, NONE).astype(child.dtype)
