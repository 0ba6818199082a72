"""Matches on another node, so that the learner goes on: one task at a time, on an actor. Ratings are such tasks."""

import contextlib
import os
import shutil
import time
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax

from tengen import files
from tengen.cluster.actor import ActorPlace
from tengen.cluster.connection import RayCluster, last_line
from tengen.config.sections import Config
from tengen.cores import LIMIT
from tengen.errors import TengenError
from tengen.files import lease
from tengen.jax_setup import keep_compiled, use_gpus
from tengen.loop.rating import Rater
from tengen.nets.specs import FILE_NAME
from tengen.run import networks
from tengen.selfplay.driver import SelfplayDriver

_PATIENCE = 900.0  # seconds beyond its time after which a task is given up, for compiling
_PLACE = 600.0  # seconds in which a node must have room for the actor, and start it
CLOSING = 3.0
"""Seconds in which an actor removes its files before it is killed."""


class MatchActor:
    """Plays matches of a run in a folder on another node. It keeps what it has compiled."""

    def __init__(self, config: Config, place: ActorPlace) -> None:
        os.environ[LIMIT] = str(place.cores)
        use_gpus(place.gpus)
        self._config, self._built = config, None
        self._folder = lease.temporary("matches")
        weakref.finalize(self, self._folder.cleanup)
        self.base = Path(self._folder.name)

    def ready(self) -> None:
        """Answers as soon as the process has been started."""

    def close(self) -> None:
        self._folder.cleanup()

    @property
    def built(self) -> Any:
        """What plays the matches, which is built when it is first needed."""
        if self._built is None:
            keep_compiled()
            self._built = self._build()
        return self._built

    def _build(self) -> Any:
        raise NotImplementedError


def place(folder: Path, models: Mapping[str, bytes]) -> None:
    """Write the files of these networks into a folder, which has no others afterwards."""
    for old in files.inside(folder):
        if old.name not in models:
            shutil.rmtree(old)
    for network, data in models.items():
        files.make_folder(folder / network)
        files.write_bytes(folder / network / FILE_NAME, data)


class TaskResult(NamedTuple):
    value: Any  # None if it failed
    why: str = ""  # it failed


class Elsewhere:
    """An actor of a class, which is started for the first task and again after it has died."""

    def __init__(
        self,
        actor: type[MatchActor],
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

    def change(self, config: Config, section: str) -> bool:
        """Use other settings. If those of the search or of the `section` change, what is under way is dropped."""
        before, self._config = self._config, config
        again = any(getattr(config, name) != getattr(before, name) for name in ("search", section))
        if again:
            self.close()
        return again

    def close(self) -> None:
        if self._actor is not None:
            self._cluster.ray.wait([self._actor.close.remote()], timeout=CLOSING)
            self._cluster.ray.kill(self._actor)
        self._actor = self._call = None


@dataclass(frozen=True)
class RatedMatches:
    name: str
    results: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()


class RatingActor(MatchActor):
    """The same matches as in the learner's process."""

    def rate(
        self,
        name: str,
        results: bytes,
        models: Mapping[str, bytes],
        seconds: float,
        last: bool,
        untrained: list[Any] | None,
    ) -> RatedMatches:
        """The matches of the network `name`, given all earlier results and the files of it and its opponents.

        The `last` of the run also plays those it is sure to beat. `untrained` are the parameters that the run began
        with, if they are to be rated first.
        """
        rater = self.built
        place(rater.path.parents[1] / networks.ACCEPTED, models)
        files.write_bytes(rater.path, results)
        rater.refresh()
        self._networks.look()
        before, end = len(rater.results), time.monotonic() + seconds
        key = jax.random.fold_in(jax.random.key(self._config.run.seed), zlib.crc32(name.encode()) >> 1)
        if untrained is not None:
            weights, half = jax.tree.unflatten(self._structure, untrained), end - seconds / 2
            weights = jax.device_put(weights, jax.local_devices()[0])
            deque(rater.rate(networks.UNTRAINED, weights, key, left=lambda: half - time.monotonic()), 0)
        parameters = self._networks.parameters(name)
        deque(rater.rate(name, parameters, key, left=lambda: end - time.monotonic(), everybody=last), 0)
        notes, rater.notes = tuple(rater.notes), []
        return RatedMatches(name, tuple(rater.results[before:]), notes)

    def _build(self) -> Rater:
        # Opponents in self-play are no players here, and this node may not have their files.
        config = replace(self._config, selfplay=replace(self._config.selfplay, opponents=()))
        playing = SelfplayDriver(config)
        self._structure = jax.tree.structure(playing.no_weights())
        files.make_folder(self.base / "ratings")
        self._networks = networks.RunNetworks(self.base, playing.game, playing.spec, config.net.dtype)
        rated = (playing.evaluate, config.search, config.rating, self._networks)
        return Rater(self.base / "ratings", playing.game, *rated)


class RatingElsewhere(Elsewhere):
    """One rating at a time, on another node."""

    def __init__(self, cluster: RayCluster, config: Config, session: int) -> None:
        super().__init__(RatingActor, cluster, config, session)
        self._name = ""

    def rate(
        self,
        name: str,
        results: Path,
        models: Mapping[str, Path],
        seconds: float,
        *,
        last: bool = False,
        untrained: list[Any] | None = None,
    ) -> None:
        """Start to rate a network, as in `RatingActor.rate`. There must be no other rating under way.

        Opponents whose files cannot be read are left out, as they are by ratings in the learner's process.
        """
        data = {name: files.read_bytes(models[name] / FILE_NAME)}
        for network, path in models.items():
            with contextlib.suppress(TengenError, OSError):
                data[network] = files.read_bytes(path / FILE_NAME)
        known = files.read_bytes(results) if results.exists() else b""
        self._name = name
        self.begin("rate", seconds, name, known, data, seconds, last, untrained)

    def rated(self, patience: float = 0.0) -> RatedMatches | None:
        """The rating that has ended, if one has within that many seconds; a note if the actor died or hangs."""
        if (found := self.take(patience)) is None:
            return None
        return found.value or RatedMatches(self._name, notes=(f"{self._name} was not rated: {found.why}",))
