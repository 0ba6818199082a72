"""A stand-in for Ray in one process: calls to actors run when the test says so, and actors die or hang on command."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from tengen.cluster.actor import ActorStatus, GamesChunk, PlayedChunks
from tengen.cluster.fleet import Fleet
from tengen.cluster.nodes import NodeShares
from tengen.selfplay.history import Finished
from tests.helpers.tiny_runs import tiny

_ANSWERED = ("look", "take", "close", "ready", "refuses")  # at once, by an actor that lives


class RayError(Exception):
    pass


class RayTaskError(RayError):
    cause: BaseException | None = None


class FakeRef:
    """The future of one call."""

    def __init__(self, actor: "FakeActor", method: str, arguments: tuple[Any, ...]) -> None:
        self.actor, self.method, self.arguments = actor, method, arguments
        self.done, self.value = False, None


@dataclass
class FakeActor:
    """A handle. It answers unless it hangs; `play` answers only when the test calls `FakeRay.deliver`."""

    place: Any
    node: str
    calls: list[FakeRef] = field(default_factory=list)
    hangs: bool = False
    dead: bool = False
    slow: bool = False  # its results do not arrive here
    reason: str = ""  # why it refuses changed settings
    versions: list[int] = field(default_factory=list)

    def __getattr__(self, method: str) -> Any:
        def remote(*arguments: Any) -> FakeRef:
            ref = FakeRef(self, method, arguments)
            self.calls.append(ref)
            return ref

        return SimpleNamespace(remote=remote)


class FakeRay:
    """What the fleet uses of the module `ray`."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, status: Any) -> None:
        self.status = status  # the answer to `look`, given the actor
        self.fetched = 0  # results that were brought here

    def put(self, value: Any) -> Any:
        return ("stored", value)

    def kill(self, actor: FakeActor) -> None:
        actor.dead = True

    def deliver(self, actor: FakeActor, value: Any) -> None:
        """Let the oldest call to `play` return."""
        ref = next(ref for ref in actor.calls if ref.method == "play" and not ref.done)
        ref.done, ref.value = True, value

    def wait(self, refs: list[FakeRef], num_returns: int = 1, timeout: float = 0, fetch_local: bool = True) -> Any:
        for ref in refs:
            if ref.actor.dead and not ref.done:
                ref.done, ref.value = True, RayError("the actor died because its process exited")
            elif not ref.actor.dead and not ref.actor.hangs and ref.method in _ANSWERED:
                if ref.method == "take" and not ref.done:
                    ref.actor.versions.append(ref.arguments[0])
                answers = {"look": self.status(ref.actor), "refuses": ref.actor.reason}
                ref.done, ref.value = True, answers.get(ref.method)
        found = [ref for ref in refs if ref.done and not (ref.actor.slow and fetch_local and ref.method == "play")]
        ready = found[:num_returns]
        return ready, [ref for ref in refs if ref not in ready]

    def get(self, ref: FakeRef) -> Any:
        if isinstance(ref.value, BaseException):
            raise ref.value
        self.fetched += ref.method == "play"
        return ref.value


class FakeCluster:
    """As `RayCluster`: `size` actors fit."""

    def __init__(self, ray: FakeRay, size: int) -> None:
        self.ray, self.size, self.shares = ray, size, NodeShares(1, 0.0, 0.0)
        self.excluded: dict[str, str] = {}
        self.names = {"n1": "first", "n2": "second"}
        self.started: list[FakeActor] = []

    def room(self) -> int:
        return self.size

    def exclude(self, node: str, why: str) -> None:
        self.excluded[node] = why

    def living(self) -> set[str]:
        return set(self.names)

    def idle(self) -> dict[str, str]:
        return {}

    def start(self, actor: type, config: Any, place: Any, *more: Any) -> FakeActor:
        self.started.append(FakeActor(place, f"n{1 + len(self.started) % 2}"))
        return self.started[-1]


class InlineRay:
    """Real actors in this thread, with as much of the module `ray` as the fleet uses."""

    exceptions = FakeRay.exceptions

    def put(self, value: Any) -> Any:
        return value

    def kill(self, actor: Any) -> None:
        pass

    def wait(self, refs: list["InlineRef"], num_returns: int = 1, timeout: float = 0, fetch_local: bool = True) -> Any:
        if not any(ref.done for ref in refs):
            refs[0].run()
        ready = [ref for ref in refs if ref.done][:num_returns]
        return ready, [ref for ref in refs if ref not in ready]

    def get(self, ref: "InlineRef") -> Any:
        return ref.value


class InlineRef:
    """A call, which is made when somebody waits for its result."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call, self.done, self.value = call, False, None

    def run(self) -> "InlineRef":
        self.done, self.value = True, self._call()
        return self


class InlineActor:
    """The handle of an actor in this thread. Only `play` is called later."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def __getattr__(self, method: str) -> Any:
        def remote(*arguments: Any) -> InlineRef:
            ref = InlineRef(partial(getattr(self._actor, method), *arguments))
            return ref if method == "play" else ref.run()

        return SimpleNamespace(remote=remote)


class InlineCluster(FakeCluster):
    """One node with room for `size` such actors."""

    def __init__(self, size: int) -> None:
        ray: Any = InlineRay()
        super().__init__(ray, size)
        self.names = {"": "here"}

    def start(self, actor: type, config: Any, place: Any, *more: Any) -> Any:
        return InlineActor(actor(config, place, *more))


RESULT = PlayedChunks((GamesChunk(0, 10, 0, 2, b""),), 50.0)


def finished(seed: int, games: int, rows: int, others: int = 0) -> Finished:
    """Random games, as an actor has them."""
    chance = np.random.default_rng(seed)
    return Finished(
        rows={
            "ply": np.arange(rows + others, dtype=np.int16),
            "planes": chance.integers(0, 255, (rows + others, 3), np.uint8),
        },
        rows_count=np.int32(rows),
        others_count=np.int32(others),
        number=chance.integers(0, 9, (games, 2)).astype(np.uint32),
        seed=chance.integers(0, 9, (games, 2)).astype(np.uint32),
        action=chance.integers(0, 9, (games, 4)).astype(np.int16),
        value=chance.random((games, 4)).astype(np.float16),
        length=np.full(games, 4, np.int32),
        opening=np.zeros(games, np.int32),
        result=np.ones(games, np.float32),
        extra={"komi": chance.random(games).astype(np.float32)},
        games_count=np.int32(games),
    )


class FleetSetting:
    """A fleet with a clock that the test moves."""

    def __init__(self, size: int, *overrides: str, **options: Any) -> None:
        self.now, self.said = 0.0, []
        self.ray = FakeRay(lambda actor: ActorStatus(actor.node, 1, "playing", version=max(actor.versions, default=-1)))
        self.cluster = FakeCluster(self.ray, size)
        cluster: Any = self.cluster
        options |= {"silent": 30.0, "clock": lambda: self.now}
        self.fleet = Fleet(cluster, tiny(*overrides), 3, self.said.append, **options)
        self.fleet._over.set()  # so that no step waits

    def step(self, seconds: float = 2.0) -> None:
        self.now += seconds
        self.fleet.step()

    @property
    def actors(self) -> list[FakeActor]:
        return [member.handle for member in self.fleet.members]

    def begin(self) -> None:
        self.fleet.publish([1.0])
        for _ in range(3):
            self.step()
