"""Ratings on another node, so that the learner goes on: the same matches as in the learner's process."""

import contextlib
import os
import shutil
import tempfile
import time
import weakref
import zlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tengen import files
from tengen.cluster.actor import ActorPlace
from tengen.cluster.connection import RayCluster
from tengen.cluster.elsewhere import Elsewhere
from tengen.config.sections import Config
from tengen.cores import LIMIT
from tengen.errors import TengenError
from tengen.files import lease
from tengen.jax_setup import use_gpus
from tengen.nets.specs import FILE_NAME
from tengen.run import networks


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
        # Opponents in self-play are no players here, and this node may not have their files.
        self._config = replace(config, selfplay=replace(config.selfplay, opponents=()))
        self._rater: Any = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

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
        import jax

        rater = self._rater = self._rater or self._build()
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

    def ready(self) -> None:
        """Answers as soon as the process has been started."""

    def close(self) -> None:
        """Remove its files: nothing else does when Ray kills the process."""
        if self._folder is not None:
            self._folder.cleanup()

    def _build(self) -> Any:
        import jax

        from tengen.jax_setup import keep_compiled
        from tengen.loop.rating import Rater
        from tengen.selfplay.driver import SelfplayDriver

        keep_compiled()
        config, playing = self._config, SelfplayDriver(self._config)
        self._structure = jax.tree.structure(playing.no_weights())
        self._folder = lease.temporary("rating")
        weakref.finalize(self, self._folder.cleanup)
        base = Path(self._folder.name)
        files.make_folder(base / "ratings")
        self._networks = networks.RunNetworks(base, playing.game, playing.spec, config.net.dtype)
        rated = (playing.evaluate, config.search, config.rating, self._networks)
        return Rater(base / "ratings", playing.game, *rated)


def place(folder: Path, models: Mapping[str, bytes]) -> None:
    """Write the files of these networks into a folder, which has no others afterwards."""
    for old in files.inside(folder):
        if old.name not in models:
            shutil.rmtree(old)
    for network, data in models.items():
        files.make_folder(folder / network)
        files.write_bytes(folder / network / FILE_NAME, data)


class RatingElsewhere:
    """One rating at a time, on another node."""

    def __init__(self, cluster: RayCluster, config: Config, session: int) -> None:
        self._config, self._name = config, ""
        self._elsewhere = Elsewhere(RatingActor, cluster, config, session)
        self.close = self._elsewhere.close

    @property
    def busy(self) -> bool:
        return self._elsewhere.busy

    def begin(
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
        self._elsewhere.begin("rate", seconds, name, known, data, seconds, last, untrained)

    def take(self, patience: float = 0.0) -> RatedMatches | None:
        """The rating that has ended, if one has within that many seconds; a note if the actor died or hangs."""
        if (found := self._elsewhere.take(patience)) is None:
            return None
        return found.value or RatedMatches(self._name, notes=(f"{self._name} was not rated: {found.why}",))

    def change(self, config: Config) -> None:
        """Rate with other settings from now on; a rating that is under way is dropped."""
        again = (config.search, config.rating) != (self._config.search, self._config.rating)
        self._elsewhere.change(config, again=again)
        self._config = config
