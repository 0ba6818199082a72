"""The self-play actors of a run: started where there is room, watched, replaced, and relieved of their games.

A thread asks all of them, and another unpacks what has arrived; the learner never waits for a node. An actor has at
most two results that nobody has taken, and at most `cluster.waiting_chunks` wait at the learner.
"""

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tengen.cluster.actor import (
    ActorPlace,
    ActorStatus,
    PlayedChunks,
    PublishedNetwork,
    SelfplayActor,
    SentNetwork,
    unpack,
)
from tengen.cluster.connection import RayCluster, last_line, why_it_died
from tengen.cluster.elsewhere import CLOSING
from tengen.config.sections import Config
from tengen.errors import TengenError
from tengen.loop.parts.running import Once
from tengen.selfplay.driver import NoFiniteNumbers
from tengen.selfplay.history import Finished

SESSIONS = 1 << 16
"""Actors that one start of a run can number: the n-th has the session SESSIONS * (start of the run) + n."""
_CALLS = 2  # results of an actor that may be under way, so that it goes on while one is fetched
_WAIT = 0.1  # seconds of one wait for results
_SCALE = 2.0  # seconds between two looks at the nodes
_BEAT = 2.0  # seconds between two questions how an actor is doing
_PER_SECOND = 200  # such questions at most
_SILENT = 60.0  # seconds without an answer after which an actor counts as hanging
_STARTING = 5  # times as many until its first answer
_PAUSES = (0.0, 1.0, 2.0, 5.0, 10.0)  # seconds before the next start, after so many actors died without a result
_ERRORS = 3  # errors of self-play on a node without a result in between, after which it is left out
_AFTER_ERROR = 30.0  # seconds before the next start: the next actor may well fail as this one did
_GONE = 15.0  # seconds after which the end waits no more for a call of Ray: 60 s after Ray died, it ends this process
_LAST = 10.0  # seconds without any result after which no more of the last games are waited for


@dataclass
class FleetActor:
    """One actor, and the calls to it that are under way."""

    handle: Any
    number: int
    asked: float  # when it was last asked how it is doing
    status: ActorStatus | None = None  # its last answer; None before the first
    look: Any = None
    take: Any = None
    sent: int = -1  # version of the network that it was sent last
    plays: list[Any] = field(default_factory=list)
    delivered: int = 0


@dataclass(frozen=True)
class Delivery:
    node: str
    played: PlayedChunks
    unpacked: tuple[Future[Finished], ...] = field(default=(), compare=False)  # the games of each chunk


class Fleet:
    """`step` does one round of the watching; `start` does so in a thread. `error` is what the run cannot go on with."""

    def __init__(
        self,
        cluster: RayCluster,
        config: Config,
        session: int,
        say: Callable[[str], None],
        *,
        opponents: Mapping[str, SentNetwork] | None = None,
        reserved: int = 0,
        silent: float = _SILENT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`opponents` are the networks in `selfplay.opponents`.

        With `reserved`, room for that many other processes is left, if the number of actors is `auto`.
        """
        self.members: list[FleetActor] = []
        self.error: BaseException | None = None
        self.lost: dict[str, int] = {}  # node -> actors that died or hung there
        self.received: dict[str, tuple[int, int]] = {}  # node -> games and rows from there
        self.published: dict[int, float] = {}  # version -> when, of the newest ones
        self.names = cluster.names  # of nodes, for people
        self.living: set[str] = set()  # nodes
        self.idle: dict[str, str] = {}  # node -> why it has no room for an actor
        self._ray, self._cluster, self.config = cluster.ray, cluster, config
        self._say, self._silent, self._clock = say, silent, clock
        self._reserved, self._room = reserved, 0
        self._opponents = (self._ray.put(opponents),) if opponents else ()
        self._session, self._started = session * SESSIONS, 0
        self._version, self._network = -1, None
        self._arrived: deque[Delivery] = deque()
        self._fetching: dict[Any, FleetActor] = {}
        self._orphans: dict[Any, FleetActor] = {}  # results of actors that are gone
        self._scaled = self._pause_until = float("-inf")
        self._crowded = math.inf  # since when there have been more actors than wanted
        self._failures = 0  # actors in a row that died without a result
        self._errors = Counter[str]()  # node -> errors of self-play there since its last result
        self._listened = math.inf  # when the actors were last asked
        self._tell = Once(say)
        self._lock, self._over, self._news = threading.RLock(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._keep, name="fleet", daemon=True)
        self._unpacker = ThreadPoolExecutor(1, "unpacking")

    def start(self) -> None:
        self._thread.start()

    def publish(self, leaves: list[Any], budgets: tuple[int, int] | None = None) -> int:
        """Send this network to all actors, by one copy in the object store of each node; its version.

        `budgets` are the simulations of full and of cheap searches with it, if they differ from the settings'.
        """
        network = self._ray.put(PublishedNetwork(leaves, self.config, budgets))
        with self._lock:
            self._version, self._network = self._version + 1, network
            self.published[self._version] = self._clock()
            for old in [version for version in self.published if version < self._version - 100]:
                del self.published[old]
            return self._version

    def change(self, config: Config) -> None:
        with self._lock:
            self.config = config

    def take(self, patience: float = 0.0) -> list[Delivery]:
        """All games that have arrived, or that do within that many seconds. If there are none, raises `error`."""
        if patience and not self._arrived:
            self._news.clear()
            if not self._arrived:
                self._news.wait(patience)
        return self._taken()

    def _taken(self) -> list[Delivery]:
        if self.error is not None and not self._arrived:
            raise self.error
        return [self._arrived.popleft() for _ in range(len(self._arrived))]

    @property
    def waiting(self) -> int:
        """Results that wait to be taken."""
        return len(self._arrived)

    def finish(self, add: Callable[[list[Delivery]], object] | None = None) -> None:
        """End all actors; with `add`, all games that have ended are handed over first, and given to it.

        If Ray has died, as when all processes of a machine are told to end, only those that have arrived are.
        """
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(_GONE)
        if self._thread.is_alive():
            self._tell("Ray does not answer any more: games that are still there are lost")
            if add is not None:
                add(self._taken())
            self.members = []
        elif add is not None:
            for member in self.members:
                member.handle.stop.remote()
            end = self._clock() + _LAST
            add(self._taken())
            while (self._orphans or any(member.plays for member in self.members)) and self._clock() < end:
                self._receive()
                if found := self._taken():
                    add(found)
                    end = self._clock() + _LAST
        if self._opponents and self.members:  # others have no files
            closing = [member.handle.close.remote() for member in self.members]
            self._ray.wait(closing, num_returns=len(closing), timeout=CLOSING)
        for member in self.members:
            self._kill(member)
        self.members = []
        self._unpacker.shutdown()

    def step(self) -> None:
        """One round: start what is missing, ask everybody, and fetch results for which there is room."""
        with self._lock:
            self._scale()
            for member in self.members:
                self._send(member)
        self._listen()
        self._receive()

    def _keep(self) -> None:
        while self.error is None and not self._over.is_set():
            try:
                self.step()
            except BaseException as error:  # it belongs to the learner's thread
                self.error = self.error or error

    def _scale(self) -> None:
        now, settings = self._clock(), self.config.cluster
        if now < self._scaled + _SCALE or now < self._pause_until:
            return
        self._scaled = now
        room = self._room = self._cluster.room()
        self.living, self.idle = self._cluster.living(), self._cluster.idle()
        for why in self._cluster.excluded.values():
            self._tell(f"left out: {why}")
        wanted = max(room - self._reserved, 1) if settings.actors == "auto" else settings.actors
        surplus = max(len(self.members) - wanted, 0)
        for member in [member for member in self.members if member.status is None][:surplus]:
            self._dismiss(member)  # for these there is no room any more
        self._crowded = min(self._crowded, now) if len(self.members) > wanted else math.inf
        # Some of them may have died with their node, which is noticed later: others need not end for that.
        if settings.actors != "auto" or now >= self._crowded + self._silent:
            for member in self.members[wanted:]:
                self._dismiss(member)
        for _ in range(wanted - len(self.members)):
            self._start_one(now)

    def _start_one(self, now: float) -> None:
        if self._started >= SESSIONS - 1:
            raise TengenError(f"{self._started:,} self-play actors were started one by one; start the run again")
        self._started += 1
        number, found = self._started, self._cluster.shares
        place = ActorPlace(self._session + number, found.cores, found.gpus)
        handle = self._cluster.start(SelfplayActor, self.config, place, *self._opponents)
        self.members.append(FleetActor(handle, number, now))

    def _send(self, member: FleetActor) -> None:
        """The newest network, if it has taken the one before, and calls to play."""
        if self._network is None:
            return
        if member.take is not None and self._ray.wait([member.take], timeout=0, fetch_local=False)[0]:
            member.take = None
        if member.take is None and member.sent < self._version:
            member.sent = self._version
            member.take = member.handle.take.remote(self._version, self._network)
        while len(member.plays) < _CALLS:
            member.plays.append(member.handle.play.remote())

    def _listen(self) -> None:
        """Ask how actors are doing. Those that do not answer hang, unless they still wait for a place."""
        now, beat = self._clock(), max(_BEAT, len(self.members) / _PER_SECOND)
        if (gap := now - self._listened) > self._silent / 2:  # this process was stopped, and not the actors
            for member in self.members:
                member.asked += gap
        self._listened = now
        asked = [member.look for member in self.members if member.look is not None]
        done = set(self._ray.wait(asked, num_returns=len(asked), timeout=0)[0]) if asked else set()
        for member in list(self.members):
            if member.look in done:
                try:
                    member.status = self._ray.get(member.look)
                except self._ray.exceptions.RayError as error:
                    self._lose(member, f"died ({why_it_died(error)})")
                    continue
                member.look = None
                if member.status is not None and member.status.node in self._cluster.excluded:
                    self._dismiss(member)  # it was placed there before that was known
                    self._scaled = float("-inf")
                    continue
            if member.look is None:
                if now >= member.asked + beat:
                    member.look, member.asked = member.handle.look.remote(), now
            elif now >= member.asked + self._patience(member):
                self._lose(member, f"does not answer for {self._patience(member):.0f} s")

    def _patience(self, member: FleetActor) -> float:
        """Seconds in which an actor must answer. One that has never answered may still wait for a free place."""
        if member.status is not None:
            return self._silent
        fits = len(self.members) <= self._room - self._reserved
        return _STARTING * self._silent if fits else math.inf

    def _receive(self) -> None:
        """Fetch results, as many as there is room for; wait a moment if there are none."""
        # Those that have delivered least come first: where more arrives than is learned from, nobody waits for ever.
        fair = sorted(self.members, key=lambda member: member.delivered)
        plays = self._orphans | {ref: member for member in fair for ref in member.plays}
        waiting = [ref for ref in plays if ref not in self._fetching]
        room = self.config.cluster.waiting_chunks - len(self._arrived) - len(self._fetching)
        if waiting and room > 0:
            # Objects stay where they are until there is room for them here.
            timeout = 0 if self._fetching else _WAIT
            ready, _ = self._ray.wait(waiting, num_returns=1, timeout=timeout, fetch_local=False)
            if ready:
                ready, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=0, fetch_local=False)
            for ref in self._shared(ready, plays)[:room]:
                self._fetching[ref] = plays[ref]
        elif not self._fetching:
            self._over.wait(_WAIT)
        if self._fetching:
            refs = list(self._fetching)
            if self._ray.wait(refs, num_returns=1, timeout=_WAIT)[0]:
                for ref in self._ray.wait(refs, num_returns=len(refs), timeout=0)[0]:
                    if (member := self._fetching.pop(ref, None)) is not None:  # else it was given up just now
                        self._arrive(member, ref)

    def _shared(self, ready: list[Any], plays: Mapping[Any, FleetActor]) -> list[Any]:
        """The results that may be fetched now: a node that sends slowly has no more places than its share."""
        nodes = {_node(member) for member in plays.values()}
        share = max(self.config.cluster.waiting_chunks // len(nodes), 1)
        under_way = Counter(_node(member) for member in self._fetching.values())
        found = []
        for ref in ready:
            node = _node(plays[ref])
            under_way[node] += 1
            if under_way[node] <= share:
                found.append(ref)
        return found

    def _arrive(self, member: FleetActor, ref: Any) -> None:
        errors = self._ray.exceptions
        try:
            played = self._ray.get(ref)
        except errors.RayError as error:
            if self._orphans.pop(ref, None) is not None:
                return  # it was lost with its actor
            if isinstance(error, errors.RayTaskError):
                self._fail(member, error)
            else:
                self._lose(member, f"died ({why_it_died(error)})")
            return
        if self._orphans.pop(ref, None) is None:
            member.plays.remove(ref)
        member.delivered += 1
        self._failures = 0
        if played.chunks:
            node = _node(member)
            self._errors.pop(node, None)
            games, rows = self.received.get(node, (0, 0))
            new = (sum(chunk.games for chunk in played.chunks), sum(chunk.rows for chunk in played.chunks))
            self.received[node] = games + new[0], rows + new[1]
            unpacked = tuple(self._unpacker.submit(unpack, chunk) for chunk in played.chunks)
            self._arrived.append(Delivery(node, played, unpacked))
            self._news.set()

    def _fail(self, member: FleetActor, error: Any) -> None:
        """Self-play raised an error. If others have games, only that node may be bad; else the run cannot go on."""
        cause, node = getattr(error, "cause", None), _node(member)
        words = str(cause) if isinstance(cause, TengenError) else last_line(error)
        if isinstance(cause, NoFiniteNumbers):
            self.error = self.error or cause
        elif not any(other.delivered for other in self.members if other is not member):
            self.error = self.error or TengenError(f"self-play on {self._name(member)} failed: {words}")
        else:
            self._errors[node] += 1
            if self._errors[node] >= _ERRORS:
                self._cluster.exclude(node, f"{self._name(member)}: self-play fails there again and again: {words}")
                if not self._cluster.room():
                    self.error = self.error or TengenError(f"self-play fails on all nodes: {words}")
            self._lose(member, f"failed: {words}")
            self._pause_until = self._clock() + _AFTER_ERROR

    def _lose(self, member: FleetActor, why: str) -> None:
        """Give up an actor; another takes its place."""
        node = _node(member)
        self.lost[node] = self.lost.get(node, 0) + 1
        self._say(f"self-play actor {member.number} on {self._name(member)} {why}; another takes its place")
        if not member.delivered:
            self._failures += 1
            self._pause_until = self._clock() + _PAUSES[min(self._failures, len(_PAUSES) - 1)]
        self._dismiss(member)
        self._scaled = float("-inf")

    def _dismiss(self, member: FleetActor) -> None:
        self.members.remove(member)
        for ref in member.plays:
            self._fetching.pop(ref, None)
        if member.plays:  # results that are there outlive their actor
            done = self._ray.wait(member.plays, num_returns=len(member.plays), timeout=0, fetch_local=False)[0]
            self._orphans |= dict.fromkeys(done, member)
        member.plays.clear()
        self._kill(member)

    def _kill(self, member: FleetActor) -> None:
        try:
            self._ray.kill(member.handle)
        except Exception as error:  # Ray has no common class for these
            self._tell(f"self-play actor {member.number} could not be ended: {error}")

    def _name(self, member: FleetActor) -> str:
        if member.status is None:
            return "an unknown node"
        return self.names.get(member.status.node, member.status.node[:8])


def _node(member: FleetActor) -> str:
    return member.status.node if member.status else ""
