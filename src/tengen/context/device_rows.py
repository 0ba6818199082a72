"""Rows that stay on the device of the games, for `GameContext(..., arrays="jax")`.

All functions have fixed shapes (B rows in a batch, N in a group), so each is compiled once.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen.games.batching import choose


def place(batch: Any, group: Any, rows: np.ndarray, start: int) -> Any:
    """The arrays of a batch [B, ...] with these `rows` of a group [N, ...] copied to it, from row `start` on."""
    if not batch:
        return batch
    size = len(jax.tree.leaves(batch)[0])
    source, here = np.zeros(size, np.int32), np.zeros(size, bool)
    source[start : start + len(rows)], here[start : start + len(rows)] = rows, True
    return _place(batch, group, source, here)


def hear(group: Any, batch: Any, rows: np.ndarray, start: int) -> Any:
    """The arrays of a group [N, ...] with the rows of a batch [B, ...] from `start` on copied to the places `rows`."""
    target = np.full(len(jax.tree.leaves(batch)[0]), np.iinfo(np.int32).max, np.int32)
    target[start : start + len(rows)] = rows
    return _hear(group, batch, target)


@jax.jit
def pad(batch: Any, count: Any) -> Any:
    """The arrays of a batch with the row `count - 1` in place of all later ones."""
    return jax.tree.map(lambda x: x[jnp.minimum(jnp.arange(len(x)), count - 1)], batch)


@jax.jit
def is_wrong(policy: Array, value: Array, legal: Array, count: Any) -> Array:
    """Bool[]: whether something is wrong with the first `count` rows of a reply."""
    bad = (jnp.isnan(policy) | (policy == jnp.inf)).any(1) | ~(legal & (policy > -jnp.inf)).any(1)
    bad |= ~(jnp.abs(value) <= 1)
    return (bad & (jnp.arange(len(bad)) < count)).any()


@jax.jit
def _place(batch: Any, group: Any, source: Array, here: Array) -> Any:
    return jax.tree.map(lambda old, new: choose(here, new[source], old), batch, group)


@jax.jit
def _hear(group: Any, batch: Any, target: Array) -> Any:
    return jax.tree.map(lambda old, new: old.at[target].set(new, mode="drop"), group, batch)
