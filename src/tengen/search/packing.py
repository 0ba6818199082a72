"""A game's state as one row of 32-bit words, so that a tree stores and fetches it in one piece."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax


def words(example: Any) -> int:
    """How many words `pack` gives for a state like `example`."""
    return sum(_words(leaf) for leaf in jax.tree.leaves(example))


def _words(leaf: Any) -> int:
    return -(-leaf.size * np.dtype(leaf.dtype).itemsize // 4)


def pack(state: Any) -> Array:
    """UInt32[W]: all leaves of one state, each padded to whole words."""
    return jnp.concatenate([_to_words(leaf) for leaf in jax.tree.leaves(state)])


def unpack(packed: Array, example: Any) -> Any:
    """The state that was packed; `example` has its structure, shapes and types."""
    leaves, treedef = jax.tree.flatten(example)
    found, start = [], 0
    for leaf in leaves:
        count = _words(leaf)
        found.append(_from_words(packed[start : start + count], leaf))
        start += count
    return jax.tree.unflatten(treedef, found)


def _to_words(leaf: Array) -> Array:
    flat = leaf.reshape(-1)
    if flat.dtype == jnp.bool_:
        flat = flat.astype(jnp.uint8)
    size = flat.dtype.itemsize
    if size == 4:
        return lax.bitcast_convert_type(flat, jnp.uint32)
    per_word = 4 // size
    padded = jnp.pad(flat, (0, -flat.size % per_word)).reshape(-1, per_word)
    return lax.bitcast_convert_type(padded, jnp.uint32)


def _from_words(part: Array, leaf: Any) -> Array:
    dtype = jnp.dtype(jnp.uint8) if leaf.dtype == jnp.bool_ else jnp.dtype(leaf.dtype)
    flat = lax.bitcast_convert_type(part, dtype).reshape(-1)[: leaf.size]
    return flat.astype(leaf.dtype).reshape(leaf.shape)
