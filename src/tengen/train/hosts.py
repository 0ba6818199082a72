"""One learner on the devices of several hosts, as processes that `jax.distributed` connects.

Process 0 is the trainer. Before each computation on the devices of all hosts it announces it, with the data, and the
others do the same (`train/following.py`).
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental import multihost_utils

from tengen.config.settings.train import TrainSettings
from tengen.errors import OptionError, TengenError
from tengen.nets.network import Network
from tengen.schema import to_dict
from tengen.train import checkpoints
from tengen.train.learner import Learner
from tengen.train.state import Figures, LearnerState

PATIENCE = 300.0  # seconds that processes wait for each other when they start
_BEAT = 1.0  # seconds between two announcements while there is nothing to compute
_GRAIN = 1 << 16  # bytes: announcements have few different sizes, each of which is a program
_PIECE = 1 << 28  # bytes that are sent at once
_NOTHING: Mapping[str, np.ndarray] = MappingProxyType({})


class Announcement(NamedTuple):
    """What process 0 said to all."""

    order: dict[str, Any]
    arrays: dict[str, np.ndarray]
    stop: bool  # whether any process was asked to stop


def connect(coordinator: str, processes: int, process: int, patience: float = PATIENCE) -> None:
    """Join the processes of one training, before JAX is used. Exits if not all have joined within `patience`."""
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise OptionError(f"--coordinator: expected HOST:PORT of process 0, as 10.0.0.1:1234, got {coordinator}")
    if not 0 <= process < processes:
        raise OptionError(f"--process: expected a number from 0 to {processes - 1}, got {process}")

    def give_up() -> None:
        # JAX would abort the process with a trace of its C++ code.
        missing = f"not all of the {processes} processes came" if process == 0 else "process 0 cannot be reached there"
        print(f"--coordinator {coordinator}: {missing} within {patience:.0f} s", file=sys.stderr, flush=True)
        os._exit(2)

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    timer = threading.Timer(patience, give_up)
    timer.daemon = True
    timer.start()
    try:
        limit = int(patience) + 60
        jax.distributed.initialize(coordinator, processes, process, initialization_timeout=limit)
    except RuntimeError as error:
        raise OptionError(f"--coordinator {coordinator}: {str(error).strip().splitlines()[0]}") from None
    finally:
        timer.cancel()
    if jax.device_count() != processes * jax.local_device_count():
        counts = f"{jax.local_device_count()} devices here, {jax.device_count()} in all"
        raise OptionError(f"--processes {processes}: all must have the same number of devices ({counts})")


def announce(
    order: Mapping[str, Any] | None = None, arrays: Mapping[str, np.ndarray] = _NOTHING, *, stop: bool = False
) -> Announcement:
    """Announce an order of process 0 to all processes, which must all call this; the others pass no order."""
    layout, blob = checkpoints.joined(arrays)
    text = json.dumps([order, layout]).encode()
    message = np.concatenate([np.frombuffer(text, np.uint8), blob]) if order is not None else blob
    try:
        sizes = _gathered([len(text), len(message), stop])
        length, size, _ = (int(number) for number in sizes[0])
        pieces = [(start, min(_PIECE, size - start)) for start in range(0, size, _PIECE)]
        found = np.concatenate([_broadcast(message[start : start + count], count) for start, count in pieces])
    except jax.errors.JaxRuntimeError as error:
        raise TengenError(f"another process of this training cannot be reached: {str(error)[:200]}") from None
    said, layout = json.loads(found[:length].tobytes())
    return Announcement(said, checkpoints.apart(layout, found[length:size]), bool(sizes[:, 2].any()))


def _gathered(numbers: list[int]) -> np.ndarray:
    """UInt64[processes, numbers]: those of all processes. Sent in halves, because JAX would cut them to 32 bits."""
    halves = multihost_utils.process_allgather(np.array(numbers, np.uint64).view(np.uint32))
    return np.ascontiguousarray(halves).reshape(-1, 2 * len(numbers)).view(np.uint64)


def _broadcast(piece: np.ndarray, size: int) -> np.ndarray:
    """The `size` bytes of process 0; the others pass none."""
    grain = max(_GRAIN, 1 << max(size.bit_length() - 3, 0))
    room = np.zeros(-(-size // grain) * grain, np.uint8)
    room[: len(piece)] = piece
    return np.asarray(multihost_utils.broadcast_one_to_all(room))[:size]


class Heartbeat:
    """Tells the others to wait while process 0 has nothing to compute, and asks them whether to stop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.asked = False  # whether another process was asked to stop
        self._clock, self._due = clock, 0.0

    def look(self) -> bool:
        """Whether another process was asked to stop. Only the thread that learns may call this."""
        if not self.asked and self._clock() >= self._due:
            self._due = self._clock() + _BEAT
            self.asked = announce({"do": "wait"}).stop
        return self.asked


class SharedLearner(Learner):
    """The learner of process 0. Its data are on the host, so there is no `many`."""

    def __init__(self, net: Network, game: Any, settings: TrainSettings, *more: Any) -> None:
        super().__init__(net, game, settings, jax.devices(), *more[1:])

    def changed(self, settings: TrainSettings) -> Learner:
        announce({"do": "change", "train": to_dict(settings)})
        return super().changed(settings)

    def place(self, state: LearnerState) -> LearnerState:
        arrays = checkpoints.flat(state)
        announce({"do": "place"}, arrays)
        return super().place(checkpoints.unflat(arrays, state, "the state"))

    def in_order(
        self, state: LearnerState, rows: Mapping[str, Any], key: Array, steps: int
    ) -> tuple[LearnerState, Figures]:
        scale = float(_local(state.rate_scale))
        announce({"do": "learn", "steps": steps, "scale": scale, "key": _numbers(key)}, rows)
        state, figures = super().in_order(state, rows, key, steps)
        return state, _local(figures)

    def settle(self, state: LearnerState, rows: Mapping[str, Any], key: Array) -> LearnerState:
        announce({"do": "settle", "key": _numbers(key)}, rows)
        return super().settle(state, rows, key)

    def judge(self, state: LearnerState, batch: Mapping[str, Array]) -> Figures:
        announce({"do": "judge"}, {name: np.asarray(values) for name, values in batch.items()})
        return _local(super().judge(state, batch))

    def weights(self, state: LearnerState, *, average: bool = True, copies: bool = True) -> Any:
        return super().weights(_local(state), average=average, copies=copies)


def _numbers(key: Array) -> list[int]:
    """A random key as an announcement has it; `key_of` is the inverse."""
    return np.asarray(jax.random.key_data(key)).tolist()


def key_of(numbers: list[int]) -> Array:
    return jax.random.wrap_key_data(jnp.asarray(np.array(numbers, np.uint32)))


def _local(tree: Any) -> Any:
    """This process's copies of arrays that are on all processes."""
    return jax.tree.map(lambda x: x.addressable_data(0), tree)
