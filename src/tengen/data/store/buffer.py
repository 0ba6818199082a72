"""The newest rows, in a ring buffer on the device: pure functions of a `RowBuffer`, for use inside `jit`.

ring = make(form, capacity)
ring = jax.jit(append, donate_argnums=0)(ring, rows, count)     # not donated, all of it would be copied
batch = jax.jit(sample, static_argnums=2)(ring, key, 256, window)
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, UInt32

from tengen.data.format.rows import RowFormat, Rows, blank
from tengen.errors import OptionError
from tengen.games.core import RandomKey

MAX_CAPACITY = 2**30


class RowBuffer(NamedTuple):
    """Room for C rows.

    The number of rows ever appended passes 2^31 in a long run, and JAX has no 64-bit numbers unless they are switched
    on for the whole program: it is kept in two words. `total` puts them together on the host.
    """

    rows: dict[str, Array]  # [capacity, ...] each; see data/format/rows.py
    head: Int32[Array, ""]  # where the next row goes
    filled: Int32[Array, ""]  # rows stored, up to the capacity
    words: UInt32[Array, "2"]  # rows ever appended: high word, low word

    @property
    def capacity(self) -> int:
        return next(iter(self.rows.values())).shape[0]


def make(form: RowFormat, capacity: int) -> RowBuffer:
    """An empty buffer. Use `jit` with `out_shardings` to choose its devices."""
    if not 1 <= capacity <= MAX_CAPACITY:
        raise OptionError(f"capacity: expected a whole number from 1 to {MAX_CAPACITY}, got {capacity}")
    return empty(blank(form, capacity, jnp))


def empty(rows: dict[str, Array]) -> RowBuffer:
    """An empty buffer that uses these arrays [C, ...]."""
    # Every leaf is a separate array, because one array cannot be donated twice.
    return RowBuffer(rows, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32), jnp.zeros(2, jnp.uint32))


def bytes_needed(form: RowFormat, capacity: int) -> int:
    return form.row_bytes * capacity


def append(ring: RowBuffer, rows: Rows, count: Int32[Array, ""] | int) -> RowBuffer:
    """The ring after the first `count` of the M `rows` (padded to M, which is at most C) were added, oldest first."""
    if set(rows) != set(ring.rows):
        raise ValueError(f"expected the fields {', '.join(ring.rows)}, got {', '.join(rows)}")
    capacity, length = ring.capacity, len(next(iter(rows.values())))
    if length > capacity:
        raise ValueError(f"a block of {length} rows does not fit a ring of {capacity}")
    count = jnp.clip(jnp.asarray(count, jnp.int32), 0, length)
    order = jnp.arange(length, dtype=jnp.int32)
    place = (ring.head + order) % capacity
    # Beyond the end nothing is written. All places differ, which spares the GPU atomic operations on small types.
    place = jnp.where(order < count, place, capacity + order)

    def write(old: Array, new: Array) -> Array:
        return old.at[place].set(new, mode="drop", unique_indices=True)

    high, low = ring.words
    new_low = low + count.astype(jnp.uint32)
    return RowBuffer(
        rows={name: write(old, rows[name]) for name, old in ring.rows.items()},
        head=(ring.head + count) % capacity,
        filled=jnp.minimum(ring.filled + count, capacity),
        words=jnp.stack([high + (new_low < low), new_low]).astype(jnp.uint32),
    )


def sample(ring: RowBuffer, key: RandomKey, batch: int, window: Int32[Array, ""] | int) -> Rows:
    """`batch` rows drawn evenly, with replacement, from the newest `window` (all, if there are fewer).

    An empty buffer gives rows of zeros, whose weight is 0.
    """
    window = jnp.clip(jnp.asarray(window, jnp.int32), 1, jnp.maximum(ring.filled, 1))
    age = jax.random.randint(key, (batch,), 0, window)
    place = (ring.head - 1 - age) % ring.capacity
    return take(ring, place)


def take(ring: RowBuffer, place: Int32[Array, " batch"]) -> Rows:
    return {name: values.at[place].get(mode="promise_in_bounds") for name, values in ring.rows.items()}


def newest(ring: RowBuffer, count: int) -> Rows:
    """The newest `count` rows (all, if there are fewer), oldest first, as NumPy on the host."""
    count = min(count, int(ring.filled))
    if count <= 0:
        return {name: np.zeros((0, *values.shape[1:]), values.dtype) for name, values in ring.rows.items()}
    length = min(1 << (count - 1).bit_length(), ring.capacity)  # few lengths, few compilations
    fetched = jax.device_get(_newest(ring, length))
    return {name: values[length - count :] for name, values in fetched.items()}


def total(ring: RowBuffer) -> int:
    """Rows ever appended, on the host."""
    high, low = (int(word) for word in jax.device_get(ring.words))
    return (high << 32) + low


@partial(jax.jit, static_argnums=1)
def _newest(ring: RowBuffer, length: int) -> Rows:
    return take(ring, (ring.head - length + jnp.arange(length, dtype=jnp.int32)) % ring.capacity)
