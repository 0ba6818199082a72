"""The games of a run, divided into lanes that are played at the same time: one for each device, or core of a CPU.

XLA uses one core for most of what a network does on a CPU, so there each lane has a thread.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from tengen.selfplay import Actor, Finished, Selfplay

_FEWEST_GAMES = 32  # of a lane on a CPU: a network wants more than a few positions at once
_MOST_LANES = 32
_NUMBERS = 100_000_000  # games that a lane can count before they would have another lane's numbers


def lane_devices(games: int) -> list[Any]:
    """The device of each lane, for so many games; each lane has as many as any other."""
    devices = jax.local_devices()
    if devices[0].platform == "cpu":
        devices = devices[:1] * min(_cores(), games // _FEWEST_GAMES)
    count = max(n for n in range(1, _MOST_LANES + 1) if n <= max(len(devices), 1) and games % n == 0)
    return devices[:count] or jax.local_devices()[:1]


def _cores() -> int:
    """That this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # a system without
        return os.cpu_count() or 1


class Lanes:
    """Plays with `selfplay`, which knows the games of one lane."""

    def __init__(self, selfplay: Selfplay, devices: list[Any]) -> None:
        self.selfplay = selfplay
        self._devices = devices
        self._threads = ThreadPoolExecutor(len(devices), "lane") if len(devices) > 1 else None

    @property
    def on_first(self) -> int:
        """How many lanes the first device has."""
        return self._devices.count(self._devices[0])

    def begin(self, key: Array) -> tuple[Actor, ...]:
        """New games, for each lane."""
        return tuple(
            jax.device_put(_numbered(self.selfplay.start(jax.random.fold_in(key, lane)), lane), device)
            for lane, device in enumerate(self._devices)
        )

    def play(
        self, weights: Any, actors: Sequence[Actor], phases: int, session: int
    ) -> Callable[[], tuple[tuple[Actor, ...], tuple[Finished, ...]]]:
        """Begin to play on for so many phases, see `Selfplay.play`; the function that is returned waits for the end.

        The evaluations of the actors, which are used up, are counted from 0: as a float it would lose count.
        """

        def one(actor: Actor, device: Any) -> tuple[Actor, Finished]:
            counted = replace(actor, evaluations=jax.device_put(jnp.float32(0), device))
            return self.selfplay.play(jax.device_put(weights, device), counted, jnp.int32(phases), jnp.uint32(session))

        if self._threads is None:
            actor, finished = one(actors[0], self._devices[0])
            return lambda: ((actor,), (finished,))

        def waited(actor: Actor, device: Any) -> tuple[Actor, Finished]:
            return jax.block_until_ready(one(actor, device))

        jobs = [
            self._threads.submit(waited, actor, device) for actor, device in zip(actors, self._devices, strict=True)
        ]

        def wait() -> tuple[tuple[Actor, ...], tuple[Finished, ...]]:
            played, finished = zip(*[job.result() for job in jobs], strict=True)
            return played, finished

        return wait


def _numbered(actor: Actor, lane: int) -> Actor:
    """With numbers for its games that no other lane gives."""
    first = jnp.uint32(lane * _NUMBERS)
    return replace(actor, number=actor.number + first, begun=actor.begun + first)
