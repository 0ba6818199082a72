"""Matches on another node, so that the learner goes on: one task at a time, on an actor."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from tengen.cluster.actor import ActorPlace
from tengen.cluster.connection import RayCluster, last_line
from tengen.config.sections import Config

_PATIENCE = 900.0  # seconds beyond its time after which a task is given up, for compiling
_PLACE = 600.0  # seconds in which a node must have room for the actor, and start it
CLOSING = 3.0
"""Seconds in which an actor removes its files before it is killed."""


class TaskResult(NamedTuple):
    """How a task ended."""

    value: Any  # None if it failed
    why: str = ""  # it failed


class Elsewhere:
    """An actor of a class, which is started for the first task and again after it has died."""

    def __init__(
        self,
        actor: type,
        cluster: RayCluster,
        config: Config,
        session: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._class, self._cluster, self._config, self._session = actor, cluster, config, session
        self._clock, self._end = clock, 0.0
        self._actor: Any = None
        self._call: Any = None
        self._ready: Any = None  # the first call to the actor, until it is answered
        self._started = 0.0

    @property
    def busy(self) -> bool:
        return self._call is not None

    def begin(self, method: str, seconds: float, *arguments: Any) -> None:
        """Start a task, which should take at most that long. There must be no other one under way."""
        if self._actor is None:
            found = self._cluster.shares
            place = ActorPlace(self._session, found.cores, found.gpus)
            self._actor = self._cluster.start(self._class, self._config, place)
            self._ready, self._started = self._actor.ready.remote(), self._clock()
        self._end = self._clock() + seconds + _PATIENCE
        self._call = getattr(self._actor, method).remote(*arguments)

    def take(self, patience: float = 0.0) -> TaskResult | None:
        """The result, if the task ends within that many seconds, or if its actor has died or hangs."""
        ray = self._cluster.ray
        if self._call is None:
            return None
        if ray.wait([self._call], timeout=patience)[0]:
            call, self._call = self._call, None
            try:
                return TaskResult(ray.get(call))
            except ray.exceptions.RayError as error:
                why = last_line(error)
        elif self._queued(ray):
            why = f"no node has had room for its process for {_PLACE:.0f} s"
        elif self._clock() < self._end:
            return None
        else:
            why = "its process does not answer"
        self.close()
        return TaskResult(None, why)

    def _queued(self, ray: Any) -> bool:
        """Whether the actor has not been started for too long, because others have all places."""
        if self._ready is not None and ray.wait([self._ready], timeout=0)[0]:
            self._ready = None
        return self._ready is not None and self._clock() >= self._started + _PLACE

    def change(self, config: Config, *, again: bool) -> None:
        """Use other settings. If those of the tasks have changed, start `again`; what is under way is dropped."""
        if again:
            self.close()
        self._config = config

    def close(self) -> None:
        """End the actor, with what it does."""
        if self._actor is not None:
            self._cluster.ray.wait([self._actor.close.remote()], timeout=CLOSING)
            self._cluster.ray.kill(self._actor)
        self._actor = self._call = None
