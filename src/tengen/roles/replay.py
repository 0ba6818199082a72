"""A replay buffer on the device, drawn from uniformly or by priority. Pure functions of a `Replay`, for use in `jit`.

Priorities are as published (Schaul and others, 2016, the proportional variant): sample i is drawn with probability
p_i^alpha / sum of all p^alpha, one in each of `batch` equal ranges of that sum; new samples have the largest priority
so far; losses are weighted by (N P(i))^-beta, divided by the largest weight of the batch.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tengen.data.store import buffer as ring
from tengen.errors import OptionError


class Replay(NamedTuple):
    """Room for C samples."""

    ring: ring.RowBuffer  # rows [C, ...] by name
    priorities: Array  # Float32[C]: p^alpha; 0 in empty places. [0] if samples are drawn uniformly
    largest: Array  # Float32[]: the largest priority so far


class ReplaySample(NamedTuple):
    """A batch of B samples."""

    rows: dict[str, Array]  # [B, ...] each
    places: Array  # Int32[B]: where they are in the buffer
    weights: Array  # Float32[B]: of their losses, at most 1


def make(like: Mapping[str, Any], capacity: int, prioritised: bool = False) -> Replay:
    """An empty buffer for rows of the shapes and types of `like`: arrays, or `jax.ShapeDtypeStruct`, of ONE sample."""
    if not like:
        raise OptionError("a replay buffer needs at least one array in its samples")
    if not 1 <= capacity <= ring.MAX_CAPACITY:
        raise OptionError(f"capacity: expected a whole number from 1 to {ring.MAX_CAPACITY}, got {capacity}")
    rows = {name: jnp.zeros((capacity, *one.shape), one.dtype) for name, one in like.items()}
    priorities = jnp.zeros(capacity if prioritised else 0, jnp.float32)
    return Replay(ring.empty(rows), priorities, jnp.ones((), jnp.float32))


def add(replay: Replay, rows: Mapping[str, Array]) -> Replay:
    """The buffer with these rows [M, ...] added, M at most C; they replace the oldest if it is full."""
    count = len(next(iter(rows.values())))
    priorities = replay.priorities
    if priorities.size:
        places = (replay.ring.head + jnp.arange(count)) % replay.ring.capacity
        priorities = priorities.at[places].set(replay.largest)
    return replay._replace(ring=ring.append(replay.ring, dict(rows), count), priorities=priorities)


def draw(replay: Replay, key: Array, batch: int, beta: Array | float = 1.0) -> ReplaySample:
    """`batch` samples, with replacement. Of an empty buffer they are zeros, and so are their weights."""
    filled = replay.ring.filled
    if not replay.priorities.size:
        places = jax.random.randint(key, (batch,), 0, jnp.maximum(filled, 1))
        weights = jnp.where(filled > 0, jnp.ones(batch), 0)
        return ReplaySample(ring.take(replay.ring, places), places, weights)
    sums = jnp.cumsum(replay.priorities)
    marks = (jnp.arange(batch) + jax.random.uniform(key, (batch,))) / batch * sums[-1]
    places = jnp.searchsorted(sums, marks, side="right")
    places = jnp.clip(places, 0, jnp.maximum(filled - 1, 0)).astype(jnp.int32)  # rounding could go beyond
    chance = jnp.maximum(replay.priorities[places], 1e-30) / jnp.maximum(sums[-1], 1e-30)
    weights = (filled * chance) ** -jnp.asarray(beta, jnp.float32)
    weights = jnp.where(filled > 0, weights / weights.max(), 0)
    return ReplaySample(ring.take(replay.ring, places), places, weights)


def renew(replay: Replay, places: Array, errors: Array, alpha: float, least: float) -> Replay:
    """The buffer with new priorities for the samples at `places`, by their errors Float32[B]."""
    if not replay.priorities.size:
        return replay
    new = (jnp.abs(errors) + least) ** alpha
    # A place that was drawn twice has the same error twice, so it does not matter which of them is written.
    priorities = replay.priorities.at[places].set(new)
    return replay._replace(priorities=priorities, largest=jnp.maximum(replay.largest, new.max()))
