"""`ReplayBuffer`: samples on the device, as an object with state. `replay` has the pure functions behind it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from safetensors.numpy import save as serialize

from tengen import files, schema
from tengen.data.store import buffer
from tengen.errors import OptionError, TengenError
from tengen.nets import saving
from tengen.roles import replay
from tengen.roles.replay import Replay, ReplaySample
from tengen.train.checkpoints import flat, unflat

_KEY = "tengen_replay_buffer"


@dataclass(frozen=True)
class _About:
    """The header of a saved buffer."""

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
        self,
        like: Mapping[str, Any],
        capacity: int,
        *,
        prioritised: bool = False,
        alpha: float = 0.6,
        least: float = 1e-3,
    ) -> None:
        self.alpha, self.least = alpha, least
        self.state: Replay = replay.make(like, capacity, prioritised)

    def __len__(self) -> int:
        return int(self.state.ring.filled)

    @property
    def capacity(self) -> int:
        """How many samples there is room for."""
        return self.state.ring.capacity

    @property
    def prioritised(self) -> bool:
        """Whether samples are drawn by priority."""
        return bool(self.state.priorities.size)

    @property
    def total(self) -> int:
        """Samples that were ever in it."""
        return buffer.total(self.state.ring)

    def add(self, rows: Mapping[str, Array]) -> None:
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

    def _checked(self, rows: Mapping[str, Array]) -> dict[str, Array]:
        """OptionError if these are no samples for this buffer."""
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
    """The arrays of a saved buffer by name, and its settings."""
    with saving.opened(path, "a replay buffer") as file:
        about = (file.metadata() or {}).get(_KEY)
        if about is None:
            raise TengenError(f"{path}: a safetensors file, but not of a replay buffer")
        return {name: file.get_tensor(name) for name in file.keys()}, schema.from_json(_About, about, str(path))  # noqa: SIM118


_add = jax.jit(replay.add, donate_argnums=0)
_draw = jax.jit(replay.draw, static_argnums=2)
_renew = partial(jax.jit, static_argnums=(3, 4), donate_argnums=0)(replay.renew)
