"""A replay buffer on the device, drawn from uniformly or by priority: pure functions of a `Replay`, for use in `jit`,
and `ReplayBuffer`, an object with state.

Priorities are as published (Schaul and others, 2016, the proportional variant): sample i is drawn with probability
p_i^alpha / sum of all p^alpha, one in each of `batch` equal ranges of that sum; new samples have the largest priority
so far; losses are weighted by (N P(i))^-beta, divided by the largest weight of the batch.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int
from safetensors.numpy import save as serialize

from tengen import files, schema
from tengen.data.store import buffer as ring
from tengen.errors import OptionError, TengenError
from tengen.nets import saving
from tengen.train.checkpoints import flat, unflat

Rows = Mapping[str, Any]  # arrays by name
_KEY = "tengen_replay_buffer"


class Replay(NamedTuple):
    """Room for C samples."""

    ring: ring.RowBuffer  # rows [C, ...] by name
    priorities: Float32[Array, " room"]  # p^alpha; 0 in empty places. No room if samples are drawn uniformly
    largest: Float32[Array, ""]  # the largest priority so far


class ReplaySample(NamedTuple):
    """A batch of B samples."""

    rows: dict[str, Array]  # [B, ...] each
    places: Int[Array, " batch"]  # where they are in the buffer
    weights: Float32[Array, " batch"]  # of their losses, at most 1


def make(like: Rows, capacity: int, prioritised: bool = False) -> Replay:
    """An empty buffer for rows of the shapes and types of `like`: arrays, or `jax.ShapeDtypeStruct`, of ONE sample."""
    if not like:
        raise OptionError("a replay buffer needs at least one array in its samples")
    if not 1 <= capacity <= ring.MAX_CAPACITY:
        raise OptionError(f"capacity: expected a whole number from 1 to {ring.MAX_CAPACITY}, got {capacity}")
    rows = {name: jnp.zeros((capacity, *one.shape), one.dtype) for name, one in like.items()}
    priorities = jnp.zeros(capacity if prioritised else 0, jnp.float32)
    return Replay(ring.empty(rows), priorities, jnp.ones((), jnp.float32))


def add(replay: Replay, rows: Rows) -> Replay:
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


def renew(
    replay: Replay, places: Int[Array, " batch"], errors: Float[Array, " batch"], alpha: float, least: float
) -> Replay:
    """The buffer with new priorities for the samples at `places`, by their errors."""
    if not replay.priorities.size:
        return replay
    new = (jnp.abs(errors) + least) ** alpha
    # A place that was drawn twice has the same error twice, so it does not matter which of them is written.
    priorities = replay.priorities.at[places].set(new)
    return replay._replace(priorities=priorities, largest=jnp.maximum(replay.largest, new.max()))


_add = jax.jit(add, donate_argnums=0)
_draw = jax.jit(draw, static_argnums=2)
_renew = jax.jit(renew, static_argnums=(3, 4), donate_argnums=0)


@dataclass(frozen=True)
class _About:
    schema: Literal[1]
    alpha: float
    least: float


class ReplayBuffer:
    """The newest `capacity` samples, each a dictionary of arrays.

        buffer = ReplayBuffer({"observation": one_observation, "reward": jnp.float32(0)}, 100_000)
        buffer.add({"observation": ..., "reward": ...})          # [M, ...] each
        drawn = buffer.sample(key, 256)                          # drawn.rows["reward"]: [256]

    With `prioritised`, tell it the error of each drawn sample: `buffer.update_priorities(drawn.places, errors)`.
    `state` is its whole state as a pytree, for compiled functions of your own.
    """

    def __init__(
        self, like: Rows, capacity: int, *, prioritised: bool = False, alpha: float = 0.6, least: float = 1e-3
    ) -> None:
        self.alpha, self.least = alpha, least
        self.state: Replay = make(like, capacity, prioritised)

    def __len__(self) -> int:
        return int(self.state.ring.filled)

    @property
    def capacity(self) -> int:
        return self.state.ring.capacity

    @property
    def total(self) -> int:
        """Samples that were ever in it."""
        return ring.total(self.state.ring)

    def add(self, rows: Rows) -> None:
        """Add M samples, [M, ...] each, the oldest first. If there are more than fit, the newest are kept."""
        rows = self._checked(rows)
        if len(next(iter(rows.values()))):
            self.state = _add(self.state, {name: array[-self.capacity :] for name, array in rows.items()})

    def sample(self, key: Array, batch: int, beta: float | Array = 1.0) -> ReplaySample:
        """Draw `batch` samples, with replacement; `beta` is how far weights compensate for priorities."""
        if batch < 1:
            raise OptionError(f"batch: expected a whole number of at least 1, got {batch}")
        if not len(self):
            raise TengenError("the replay buffer is empty: add samples before drawing any")
        return _draw(self.state, key, batch, jnp.float32(beta))

    def update_priorities(self, places: Array, errors: Array) -> None:
        """Set the priorities of the samples at `places` by their `errors`. Does nothing without `prioritised`."""
        self.state = _renew(self.state, places, errors, self.alpha, self.least)

    def save(self, path: Path | str) -> None:
        """Write it as one safetensors file, which is complete or absent."""
        about = json.dumps(asdict(_About(1, self.alpha, self.least)))
        files.write_bytes(Path(path), serialize(flat(self.state), {_KEY: about}))

    def load(self, path: Path | str) -> None:
        """Restore a saved buffer, which must have the same kind of samples and the same capacity."""
        arrays, about = _read(Path(path))
        problem = f"{path}: of another replay buffer than this one"
        state = jax.tree.map(jnp.asarray, unflat(arrays, self.state, problem))
        head, filled, room = int(state.ring.head), int(state.ring.filled), self.capacity
        if not (0 <= head < room and 0 <= filled <= room):
            raise TengenError(f"{path}: no replay buffer: {filled} samples from {head} on do not fit {room}")
        self.state, self.alpha, self.least = state, about.alpha, about.least

    def _checked(self, rows: Rows) -> dict[str, Array]:
        wanted = self.state.ring.rows
        if set(rows) != set(wanted):
            raise OptionError(f"samples: expected the arrays {', '.join(wanted)}, got {', '.join(rows) or 'none'}")
        found = {name: jnp.asarray(rows[name], array.dtype) for name, array in wanted.items()}
        counts = {array.shape[:1] for array in found.values()}
        if len(counts) != 1 or () in counts:
            raise OptionError("samples: expected the same number in every array, [M, ...]")
        for name, array in wanted.items():
            if found[name].shape[1:] != array.shape[1:]:
                raise OptionError(f"samples: {name}: expected [M, *{array.shape[1:]}], got {found[name].shape}")
        return found


def _read(path: Path) -> tuple[dict[str, np.ndarray], _About]:
    with saving.opened(path, "a replay buffer") as file:
        about = (file.metadata() or {}).get(_KEY)
        if about is None:
            raise TengenError(f"{path}: a safetensors file, but not of a replay buffer")
        return {name: file.get_tensor(name) for name in file.keys()}, schema.from_json(_About, about, str(path))  # noqa: SIM118
