"""Frees room in full trees by removing the least visited nodes."""

from dataclasses import replace

import jax
import jax.numpy as jnp

from tengen.search.tree import NONE, Tree


def prune(tree: Tree) -> Tree:
    """Frees at least half of every tree. The least visited nodes go; the search finds them again if they matter.

    The statistics of the nodes above stay. A node has no more visits than its parent, so whole subtrees go. The choices
    stored by GPU programs (`Tree.onward`) are not updated: this is for `SearchSettings.kernels` `plain`, and for trees
    of several leaves.
    """
    return jax.vmap(_prune)(tree)


def _prune(tree: Tree) -> Tree:
    slots = tree.visits.shape[0]
    index = jnp.arange(slots)
    in_use = jnp.zeros(slots, bool).at[tree.free].set(index < tree.used)
    visits = jnp.where(in_use, tree.visits, 0)
    # The visits of the first node outside the better half; nodes with as many visits go too.
    limit = jnp.sort(visits, descending=True)[slots // 2]
    keep = in_use & ((visits > limit) | (index == tree.root))
    place = jnp.where(keep, jnp.cumsum(keep), keep.sum() + jnp.cumsum(~keep)) - 1
    return replace(
        tree,
        child=jnp.where((tree.child >= 0) & keep[jnp.maximum(tree.child, 0)], tree.child, NONE),
        free=jnp.zeros_like(tree.free).at[place].set(index.astype(tree.free.dtype)),
        used=keep.sum(dtype=jnp.int32),
    )
