"""A run on a cluster: the fused loop's learner, whose games are played by actors on other devices and machines."""

import contextlib
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from tengen.cluster.actor import ActorStatus, read_opponents
from tengen.cluster.connection import RayCluster
from tengen.cluster.elsewhere import Elsewhere, RatingElsewhere
from tengen.cluster.fleet import SESSIONS, Delivery, Fleet
from tengen.cluster.gate import ClusterGate, GateActor
from tengen.errors import Diverged, TengenError
from tengen.loop.fused import Fused
from tengen.loop.parts.running import Once
from tengen.match import results
from tengen.monitor.display import Display
from tengen.nets import saving
from tengen.nets.network import Network
from tengen.run import networks, safe_exit
from tengen.run.networks import UNTRAINED
from tengen.run.part import Stop
from tengen.run.part_status import NODE, PartStatus
from tengen.run.status import NetworkCounts, RunStatus
from tengen.selfplay.driver import NoFiniteNumbers
from tengen.words import age, counted, rate

_BLOCK = 4096  # rows that go to the device at once
_ROOM_FOR_MATCHES = 4  # actors: of as many places, one is given to ratings or to the gate
_LONGEST_RATING = 3600.0  # seconds on another node, if the run goes on for longer
_PATIENCE = 0.5  # seconds of waiting for games before the display is looked after
_ANSWER = 15.0  # seconds in which nodes must say whether changed settings fit them
_ATTEMPTS = 20  # to go on at the gate, at the end of the run, with networks that cannot be read


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
        self._gate: ClusterGate | None = None  # if there is one
        self._accepted = ""  # the network that plays, if there is a gate
        self._say_once = Once(lambda text: self.reporter.say(text))
        self._judged: NetworkCounts | None = None
        self._gate_end = math.inf  # when the last match must end, by the monotonic clock
        self._rated = ""  # the network that was rated last, likewise
        self._published = -1  # step of the network that self-play has, or that went to the gate
        self._budgets: tuple[int, int] | None = None  # that were published
        self._stop: Stop = lambda: False

    def run(self, stop: Stop) -> None:
        self._stop = stop
        super().run(stop)

    def _start_playing(self) -> None:
        self._block = min(_BLOCK, self.components.capacity)
        session, config, say = self.counts.sessions, self.config, self.reporter.say
        wanted = int(config.cluster.gate) + 1
        room, actors = self._cluster.room(), config.cluster.actors
        spare = room // _ROOM_FOR_MATCHES if actors == "auto" else max(room - actors, 0)
        reserved = min(spare, wanted)
        if config.cluster.gate:
            elsewhere = Elsewhere(GateActor, self._cluster, config, session * SESSIONS) if reserved else None
            if elsewhere is not None:
                self._closing.callback(elsewhere.close)
            self._gate = ClusterGate(config, self.base, elsewhere, self._gate_stops, say)
        if reserved == wanted:
            self._rating = RatingElsewhere(self._cluster, config, session * SESSIONS)
            self._closing.callback(self._rating.close)
        sent = read_opponents(config, self.components.game)
        self.fleet = Fleet(self._cluster, config, session, say, opponents=sent, reserved=reserved)
        self._publish()
        self.fleet.start()
        self._closing.enter_context(safe_exit.before(self._keep_arrived))
        self._closing.callback(self.fleet.finish)

    def _gate_stops(self) -> bool:
        return self._stop() or time.monotonic() >= self._gate_end

    def _play(self, stop: Stop) -> None:
        """Take the games that have arrived; wait for some if there is nothing to learn."""
        busy = self.trainer.affordable and not self._waiting
        self._show("learning" if busy else "waiting for games", self._waiting)
        with self._noticing_divergence():
            self._receive(self.fleet.take(0.0 if busy else _PATIENCE))
        self._hear_rating()

    def _learn(self, stop: Stop) -> None:
        playing = self.weights
        super()._learn(stop)
        if self._gate is not None:
            self.weights = playing
        self._publish()

    def _receive(self, deliveries: list[Delivery]) -> None:
        before = self.counts.rows
        for delivery in deliveries:
            self._add(delivery)
        if self.counts.rows > before:
            self._feed(self.counts.rows - before)

    @contextlib.contextmanager
    def _noticing_divergence(self) -> Iterator[None]:
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
        """Send the network to self-play, or to the gate, if it is time."""
        step, first = self.trainer.step, self._published < 0
        due = first or step - self._published >= self.config.cluster.stale_steps
        if self._gate is not None:
            if due and not first and not self._gate.busy and step > self._saved_step:
                self._save_network()
                self._published = step
            self._look_at_gate(again=first)
        elif due:
            self.weights = self.components.weights()
            self._send()
        if due and (first or self._gate is None):
            self._published = step

    def _send(self) -> None:
        self._budgets = self._enter_stage()
        self.fleet.publish(jax.device_get(jax.tree.leaves(self.weights)), self._budgets)

    def _look_at_gate(self, patience: float = 0.0, *, again: bool = False) -> None:
        """Go on with the match of a candidate. If one was accepted, it plays."""
        assert self._gate is not None
        if self._gate.look(patience) or again:
            counts = (networks.accepted, networks.rejected, networks.candidates)
            before, self._judged = self._judged, NetworkCounts(*(len(find(self.base)) for find in counts))
            if self._judged != before:
                self.rater.refresh()
            again = self._take_accepted() or again
        if again or self._enter_stage() != self._budgets:
            self._send()

    def _take_accepted(self) -> bool:
        """Play with the newest accepted network that can be read; whether that is another one than before."""
        for entry in reversed(networks.accepted(self.base)):
            if entry.name == self._accepted:
                return False
            self.networks.look()
            try:
                self.weights = self.networks.parameters(entry.name)
                net = saving.load(entry.path, self.components.game)
            except TengenError as error:
                self._say_once(f"an accepted network cannot play, an older one does instead: {error}")
                continue
            self._accepted = entry.name
            self._take_network(net, entry.name)
            return True
        return False

    def _keep_network(self, net: Network, name: str, info: Mapping[str, Any]) -> None:
        if self.config.cluster.gate:
            self.networks.submit(net, name, self.trainer.step, info)
        else:
            super()._keep_network(net, name, info)

    def _to_rate(self, stop: Stop) -> str:
        """With a gate, the newest network that it has accepted. At the end of the run the last one is judged before."""
        if not self.config.cluster.gate:
            return super()._to_rate(stop)
        if self._all_at_once and self._gate is not None:
            if self.trainer.step > self._saved_step:
                self._save_network()
            left = self._budget.until_closing(self._metrics.elapsed)
            self._gate_end = time.monotonic() + left / 2  # the rest is for its rating
            while self._gate.busy and self._gate.stuck < _ATTEMPTS and not (stop() or self._gate_stops()):
                self._show("waiting for the gate")
                self._look_at_gate(_PATIENCE)
        return self._accepted if self._accepted != self._rated else ""

    def _standing(self) -> RunStatus:
        found = super()._standing()
        if self.fleet is None:
            return found
        steps, train = self.session.steps_per_second, self.config.train
        appetite = None if steps is None else steps * train.batch / train.samples_per_row
        nodes = of_nodes(self.fleet, time.monotonic())
        return replace(found, parts=nodes, appetite=appetite, networks=self._judged)

    def _rate(self, name: str, seconds: float, stop: Stop, *, last: bool = False) -> None:
        """On another node, if there is room; at the end the result is waited for."""
        if self._rating is None:
            super()._rate(name, seconds, stop, last=last)
            self._rated = name
            return
        end = time.monotonic() + seconds
        if last:
            self._wait_for_rating(end, stop)
        if not self._rating.busy:
            opponents = [saved.name for saved in self.networks.saved if saved.name in self.rater.opponents(name)]
            models = {network: self.networks.path(network) for network in (name, *opponents)}
            left = end - time.monotonic() if last else min(max(self._left, seconds), _LONGEST_RATING)
            untrained = None if self._untrained is None else jax.device_get(jax.tree.leaves(self._untrained))
            self._rating.rate(name, self.rater.path, models, left, last=last, untrained=untrained)
            self._rated = name
            self.reporter.say(f"{name} is being rated on another node")
        self._rated_at = self._now().seconds
        if last:
            self._wait_for_rating(end, stop)

    def _rate_untrained(self, seconds: float, stop: Stop) -> None:
        if self._rating is None:  # else it is rated there, with the first that has learned
            super()._rate_untrained(seconds, stop)

    def _wait_for_rating(self, end: float, stop: Stop) -> None:
        while self._rating is not None and self._rating.busy and time.monotonic() < end and not stop():
            self._show("waiting for a rating on another node")
            self._hear_rating(_PATIENCE)

    def _hear_rating(self, patience: float = 0.0) -> None:
        found = None if self._rating is None else self._rating.rated(patience)
        if found is not None:
            for result in found.results:
                results.append(self.rater.path, result)
            self.rater.refresh()
            self.rater.notes.extend(found.notes)
            for name in dict.fromkeys(result.a for result in found.results) or (found.name,):
                self._note_matches(name, [result for result in found.results if result.a == name])
                if name == UNTRAINED:
                    self._untrained = None

    def _change(self, config: Any) -> None:
        super(Fused, self)._change(config)
        self.collector.settings = config.data
        self.components.trainer.change(config.train)
        before = self.fleet.config
        changed = (before.search, before.selfplay) != (config.search, config.selfplay)
        if changed and (why := self._refused(config)):
            self.config = config = config.with_selfplay_of(before)
            self.reporter.say(f"self-play stays as it is: {why}")
        self.fleet.change(config)
        self._published = -1
        self._publish()
        if self._rating is not None:
            self._rating.change(config, "rating")  # one that is under way is dropped
        if self._gate is not None:
            self._gate.change(config)

    def _refused(self, config: Any) -> str:
        """Why a node cannot play with changed settings; empty if all that answer can."""
        ray, members = self._cluster.ray, [member for member in list(self.fleet.members) if member.status is not None]
        asked = {member.status.node: member.handle.refuses.remote(config) for member in members}
        refs = list(asked.values())
        done = ray.wait(refs, num_returns=len(refs), timeout=_ANSWER)[0] if refs else []
        for node, ref in asked.items():
            with contextlib.suppress(ray.exceptions.RayError):  # a node that dies has no say
                if ref in done and (why := ray.get(ref)):
                    return f"{self.fleet.names.get(node, node[:8])}: {why}"
        return ""

    def _finish(self, stop: Stop) -> None:
        self._all_at_once = True
        if self.fleet is not None:
            self._show("ending self-play")
            with self._noticing_divergence():
                self.fleet.finish(self._receive)
            self._learn(stop)
        super()._finish(stop)


def of_nodes(fleet: Fleet, now: float) -> tuple[PartStatus, ...]:
    """A part for each node that has self-play actors or has no room for any, one for actors to come, and one for all
    nodes that have left: a cluster may have had very many."""
    members, names = list(fleet.members), fleet.names
    known = {node for node in (*fleet.received, *fleet.lost) if node in names}
    found: dict[str, list[ActorStatus]] = {node: [] for node in known & fleet.living}
    for member in members:
        if member.status is not None:
            found.setdefault(member.status.node, []).append(member.status)
    parts = [
        replace(
            _node(names.get(node, node[:8]), actors, fleet.received.get(node, (0, 0)), fleet.published, now),
            restarts=fleet.lost.get(node, 0),
        )
        for node, actors in found.items()
    ]
    idle = {node: words for node, words in fleet.idle.items() if node not in found}
    parts += [PartStatus(NODE, names.get(node, node[:8]), words=words, waiting=False) for node, words in idle.items()]
    if homeless := len(members) - sum(map(len, found.values())):
        words = f"{counted(homeless, 'self-play actor')} to be started"
        parts.append(PartStatus(NODE, "to-come", words=words, waiting=True))
    if gone := known - set(found):
        games, rows = (sum(fleet.received.get(node, (0, 0))[k] for node in gone) for k in (0, 1))
        words = (
            f"{counted(len(gone), 'node')} {'has' if len(gone) == 1 else 'have'} left; {games:,} games, {rows:,} rows"
        )
        restarts = sum(fleet.lost.get(node, 0) for node in gone)
        figures = {"games": games, "rows": rows}
        parts.append(PartStatus(NODE, "gone", words=words, waiting=False, restarts=restarts, figures=figures))
    return tuple(sorted(parts, key=lambda part: part.name))


def _node(
    name: str, actors: list[ActorStatus], received: tuple[int, int], published: Mapping[int, float], now: float
) -> PartStatus:
    speed = sum(actor.evaluations_per_second for actor in actors)
    ages = [now - published[actor.version] for actor in actors if actor.version in published]
    figures: dict[str, Any] = {
        "actors": len(actors),
        "evaluations_per_second": round(speed) if speed else None,
        "games": received[0],
        "rows": received[1],
        "network_age": round(max(ages), 1) if ages else None,
        "waiting": sum(actor.waiting for actor in actors),
    }
    waits = [actor for actor in actors if actor.waiting]
    busy = [actor for actor in actors if not actor.waiting]
    words = [actor.words for actor in (busy or waits)]
    doing = max(words, key=words.count, default="")  # what most of them do, or wait for
    more = [
        rate(speed).replace("/s", " evaluations/s") if speed else "",
        f"{received[0]:,} games, {received[1]:,} rows" if received[0] else "",
        f"network {age(max(ages))} old" if ages else "",
        f"{len(waits)} of {len(actors)} wait" if waits and busy else "",
    ]
    words = ", ".join(filter(None, (f"{doing} ({counted(len(actors), 'actor')})" if actors else "no actor", *more)))
    seconds = min((actor.seconds for actor in (busy or waits)), default=0.0)
    return PartStatus(NODE, name, machine=name, words=words, waiting=not busy, seconds=seconds, figures=figures)
