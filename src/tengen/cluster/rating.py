"""Ratings on another node, so that the learner goes on: the same matches as in the learner's process."""

import os
import tempfile
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen import files
from tengen.cluster.actor import ActorPlace
from tengen.cluster.connection import last_line
from tengen.config.sections import Config
from tengen.cores import LIMIT
from tengen.jax_setup import use_gpus
from tengen.nets.specs import FILE_NAME
from tengen.run import networks

_PATIENCE = 900.0  # seconds beyond its time after which a rating is given up, for compiling


@dataclass(frozen=True)
class RatedMatches:
    """What the matches of a network gave."""

    name: str
    results: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()


class RatingActor:
    """Keeps its compiled matches from one network to the next."""

    def __init__(self, config: Config, place: ActorPlace) -> None:
        os.environ[LIMIT] = str(place.cores)
        use_gpus(place.gpus)
        self._config, self._session = config, place.session
        self._rater: Any = None

    def rate(self, name: str, results: bytes, models: Mapping[str, bytes], seconds: float) -> RatedMatches:
        """The matches of the network `name`, given all earlier results and the files of it and its opponents."""
        import jax

        rater = self._rater = self._rater or self._build()
        for network, data in models.items():
            folder = self._networks.path(network)
            files.make_folder(folder)
            files.write_bytes(folder / FILE_NAME, data)
        files.write_bytes(rater.path, results)
        rater.refresh()
        self._networks.look()
        before, end = len(rater.results), time.monotonic() + seconds
        key = jax.random.fold_in(jax.random.key(self._config.run.seed), zlib.crc32(name.encode()) >> 1)
        parameters = self._networks.parameters(name)
        for _ in rater.rate(name, parameters, key, left=lambda: end - time.monotonic()):
            pass
        notes, rater.notes = tuple(rater.notes), []
        return RatedMatches(name, tuple(rater.results[before:]), notes)

    def _build(self) -> Any:
        from tengen.jax_setup import keep_compiled
        from tengen.loop.rating import Rater
        from tengen.selfplay.driver import SelfplayDriver

        keep_compiled()
        config, playing = self._config, SelfplayDriver(self._config)
        self._folder = tempfile.TemporaryDirectory(prefix="tengen-rating-")
        base = Path(self._folder.name)
        files.make_folder(base / "ratings")
        self._networks = networks.RunNetworks(base, playing.game, playing.spec, config.net.dtype)
        rated = (playing.evaluate, config.search, config.rating, self._networks)
        return Rater(base / "ratings", playing.game, *rated)


class RatingElsewhere:
    """One rating at a time, on an actor that is started again when it dies."""

    def __init__(self, cluster: Any, config: Config, session: int, clock: Any = time.monotonic) -> None:
        self._cluster, self._config, self._session, self._clock = cluster, config, session, clock
        self._actor: Any = None
        self._call: Any = None
        self._name, self._end = "", 0.0

    @property
    def busy(self) -> bool:
        return self._call is not None

    def begin(self, name: str, results: Path, models: Mapping[str, Path], seconds: float) -> None:
        """Start to rate a network. There must be no other rating under way."""
        if self._actor is None:
            found = self._cluster.shares
            place = ActorPlace(self._session, found.cores, found.gpus)
            self._actor = self._cluster.start(RatingActor, self._config, place)
        data = {network: files.read_bytes(path / FILE_NAME) for network, path in models.items()}
        known = files.read_bytes(results) if results.exists() else b""
        self._name, self._end = name, self._clock() + seconds + _PATIENCE
        self._call = self._actor.rate.remote(name, known, data, seconds)

    def take(self, patience: float = 0.0) -> RatedMatches | None:
        """The rating that has ended, if one has within that many seconds; a note if the actor died or hangs."""
        ray = self._cluster.ray
        if self._call is None:
            return None
        if ray.wait([self._call], timeout=patience)[0]:
            call, self._call = self._call, None
            try:
                return ray.get(call)
            except ray.exceptions.RayError as error:
                why = last_line(error)
        elif self._clock() < self._end:
            return None
        else:
            why = "its process does not answer"
        self.close()
        return RatedMatches(self._name, notes=(f"{self._name} was not rated: {why}",))

    def change(self, config: Config) -> None:
        """Rate with other settings from now on; a rating that is under way is dropped."""
        if (config.search, config.rating) != (self._config.search, self._config.rating):
            self.close()
        self._config = config

    def close(self) -> None:
        """End the actor, with what it does."""
        if self._actor is not None:
            self._cluster.ray.kill(self._actor)
        self._actor = self._call = None
