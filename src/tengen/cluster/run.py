"""A run on a cluster: the fused loop's learner, whose games are played by actors on other devices and machines."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from tengen.cluster.connection import RayCluster
from tengen.cluster.fleet import SESSIONS, Delivery, Fleet
from tengen.cluster.rating import RatingElsewhere
from tengen.cluster.status import of_nodes
from tengen.errors import Diverged
from tengen.loop.fused import Fused
from tengen.loop.rating import UNTRAINED
from tengen.match import results
from tengen.monitor.display import Display
from tengen.run import safe_exit
from tengen.run.part import Stop
from tengen.run.status import RunStatus
from tengen.selfplay.driver import NoFiniteNumbers

_BLOCK = 4096  # rows that go to the device at once
_ROOM_FOR_RATING = 4  # actors: with fewer places, none is given up for ratings
_LONGEST_RATING = 3600.0  # seconds on another node, if the run goes on for longer
_PATIENCE = 0.5  # seconds of waiting for games before the display is looked after


class ClusterRun(Fused):
    """One run in the directory `base`, which this process alone reads and writes."""

    kind = "cluster"
    plays = False
    _all_at_once = False  # games arrive while it learns

    def __init__(self, config: Any, base: Path, display: Display, *, cluster: RayCluster, **options: Any) -> None:
        super().__init__(config, base, display, **options)
        self._cluster = cluster
        self.fleet: Any = None  # once it plays
        self._rating: RatingElsewhere | None = None  # if there is room for it
        self._published = -1  # step of the network that self-play has

    def _start_playing(self) -> None:
        self._block = min(_BLOCK, self.components.capacity)
        session, room, actors = self.counts.sessions, self._cluster.room(), self.config.cluster.actors
        elsewhere = room >= _ROOM_FOR_RATING if actors == "auto" else room > actors
        if elsewhere:
            self._rating = RatingElsewhere(self._cluster, self.config, session * SESSIONS)
            self._closing.callback(self._rating.close)
        self.fleet = Fleet(self._cluster, self.config, session, self.reporter.say, reserved=int(elsewhere))
        self._publish()
        self.fleet.start()
        self._closing.enter_context(safe_exit.before(self._keep_arrived))
        self._closing.callback(self.fleet.finish)

    def _play(self) -> None:
        """Take the games that have arrived; wait for some if there is nothing to learn."""
        busy = self.trainer.affordable and not self._waiting
        self._show("learning" if busy else "waiting for games", self._waiting)
        with self._noticing_divergence():
            self._receive(self.fleet.take(0.0 if busy else _PATIENCE))
        self._hear_rating()

    def _learn(self, stop: Stop) -> None:
        super()._learn(stop)
        self._publish()

    def _receive(self, deliveries: list[Delivery]) -> None:
        """Take in games."""
        before = self.counts.rows
        for delivery in deliveries:
            self._add(delivery)
        if self.counts.rows > before:
            self._feed(self.counts.rows - before)

    @contextlib.contextmanager
    def _noticing_divergence(self) -> Iterator[None]:
        """Around what may bring an error of self-play here."""
        try:
            yield
        except NoFiniteNumbers as error:
            raise Diverged.at(self.trainer.step, str(error)) from error

    def _add(self, delivery: Delivery, *, learn: bool = True) -> None:
        """Games to the files and, to `learn` from them, to the buffer."""
        evaluations = delivery.played.evaluations
        for chunk, unpacked in zip(delivery.played.chunks, delivery.unpacked, strict=True):
            finished = unpacked.result()
            self.collector.add(finished, evaluations, self.components.playing.boards[chunk.board].game)
            if chunk.rows and learn:
                self.buffer = self.components.load(self.buffer, finished.rows, chunk.rows, self._block)
            self.counts = self._now().plus(chunk.games, chunk.rows, evaluations)
            evaluations = 0.0  # counted with the first

    def _keep_arrived(self) -> None:
        """Games that have arrived are written, too, if the process must end at once."""
        for delivery in self.fleet.take():
            self._add(delivery, learn=False)

    def _publish(self) -> None:
        """Send the network to self-play, if it is time."""
        step = self.trainer.step
        if self._published < 0 or step - self._published >= self.config.cluster.stale_steps:
            self.weights = self.components.weights()
            self.fleet.publish(jax.device_get(jax.tree.leaves(self.weights)), self._enter_stage())
            self._published = step

    def _standing(self) -> RunStatus:
        found = super()._standing()
        if self.fleet is None:
            return found
        steps, train = self.session.steps_per_second, self.config.train
        appetite = None if steps is None else steps * train.batch / train.samples_per_row
        return replace(found, parts=of_nodes(self.fleet, time.monotonic()), appetite=appetite)

    def _rate(self, name: str, seconds: float, stop: Stop) -> None:
        """On another node, if there is room; at the end the result is waited for."""
        if self._rating is None or name == UNTRAINED:
            super()._rate(name, seconds, stop)
            return
        end, last = time.monotonic() + seconds, self._all_at_once
        if last:
            self._wait_for_rating(end, stop)
        if not self._rating.busy:
            opponents = [saved.name for saved in self.networks.saved if saved.name in self.rater.opponents(name)]
            models = {network: self.networks.path(network) for network in (name, *opponents)}
            left = end - time.monotonic() if last else min(max(self._left, seconds), _LONGEST_RATING)
            self._rating.begin(name, self.rater.path, models, left)
            self.reporter.say(f"{name} is being rated on another node")
        self._rated_at = self._now().seconds
        if last:
            self._wait_for_rating(end, stop)

    def _wait_for_rating(self, end: float, stop: Stop) -> None:
        while self._rating is not None and self._rating.busy and time.monotonic() < end and not stop():
            self._show("waiting for a rating on another node")
            self._hear_rating(_PATIENCE)

    def _hear_rating(self, patience: float = 0.0) -> None:
        """Take the result of a rating that has ended on another node."""
        found = None if self._rating is None else self._rating.take(patience)
        if found is not None:
            for result in found.results:
                results.append(self.rater.path, result)
            self.rater.refresh()
            self.rater.notes.extend(found.notes)
            self._note_matches(found.name, found.results)

    def _change(self, config: Any) -> None:
        super(Fused, self)._change(config)
        self.collector.settings = config.data
        self.components.trainer.change(config.train)
        self.fleet.change(config)
        self._published = -1
        self._publish()
        if self._rating is not None:
            self._rating.change(config)

    def _finish(self, stop: Stop) -> None:
        self._all_at_once = True
        if self.fleet is not None:
            self._show("ending self-play")
            with self._noticing_divergence():
                self.fleet.finish(self._receive)
            self._learn(stop)
        super()._finish(stop)
