"""Connecting to a Ray cluster, or starting Ray on this machine, and checking that the nodes can take part.

Whether a cluster answers at an address is found out before Ray itself is imported, which would try for minutes.
"""

import contextlib
import logging
import os
import platform
import re
import secrets
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tengen
from tengen import files
from tengen.cluster.nodes import ClusterNode, NodeShares, read_nodes, shares
from tengen.config.settings.parts import ClusterSettings
from tengen.errors import OptionError, TengenError
from tengen.jax_setup import use_gpus
from tengen.words import counted

_ANSWER = 60.0  # seconds in which a node must start a worker
_LOOK = 0.2  # seconds between two looks whether it has
_ATTEMPTS = 3  # to start Ray on this machine: on a busy one, it may not start within the half minute that it allows
_LATE = "timed out during startup"  # Ray's words for that
_OLDEST = (2, 60)  # version of Ray


def library(option: str = "--mode cluster") -> Any:
    """The module `ray`, which that option of a command needs. OptionError if it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray prints hundreds of lines when a worker or node dies, which the run reports in one.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    try:
        import ray
    except ImportError:
        raise OptionError(f"{option} needs Ray, which is not installed: pip install 'tengen-zero[cluster]'") from None
    version = str(getattr(ray, "__version__", ""))
    if (found := tuple(map(int, re.findall(r"\d+", version)[:2]))) and found < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise OptionError(f"{option} needs Ray {oldest} or newer, got {version}: pip install 'tengen-zero[cluster]'")
    return ray


class CheckedNodes:
    """The nodes of a cluster that this process is connected to, as far as they have the same versions."""

    def __init__(self, ray: Any) -> None:
        """TengenError if one of the nodes cannot take part. Those that come later are left out instead."""
        self.ray, self.own = ray, ray.get_runtime_context().get_node_id()
        self.excluded: dict[str, str] = {}  # nodes that cannot take part, and why
        self.names: dict[str, str] = {}  # of nodes, for people
        self._good = {self.own}
        self._asked: dict[str, Any] = {}
        self._check_all()

    def nodes(self) -> list[ClusterNode]:
        """The living nodes that can take part. New ones are asked first, and appear when they have answered."""
        return [node for node in read_nodes(self.ray.nodes(), self.names) if self._takes_part(node)]

    def exclude(self, node: str, why: str) -> None:
        self._good.discard(node)
        self.excluded[node] = why

    def where(self) -> dict[str, Any]:
        """Options of Ray for an actor that may run on any of these nodes."""
        return {"label_selector": {"ray.io/node-id": f"!in({','.join(self.excluded)})"}} if self.excluded else {}

    def _on(self, node: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(node, soft=False)

    def _check_all(self) -> None:
        """TengenError if a node that is there now cannot take part. Nodes that die meanwhile do not matter."""
        end = time.monotonic() + _ANSWER
        while True:
            there = read_nodes(self.ray.nodes(), self.names)
            silent = [node for node in there if not self._takes_part(node)]
            why = next((self.excluded[node.id] for node in silent if node.id in self.excluded), "")
            if silent and not why and time.monotonic() > end:
                why = f"{silent[0].name}: started no Python process in {_ANSWER:.0f} s"
            if why:
                raise TengenError(f"{why}; repair that node, or take it out of the cluster")
            if not silent:
                return
            time.sleep(_LOOK)

    def _ask(self, node: ClusterNode) -> None:
        def versions() -> dict[str, str]:  # a nested function, so that it needs no Tengen to arrive there
            import platform

            import tengen

            return {"Python": platform.python_version(), "Tengen": tengen.__version__}

        remote = self.ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=self._on(node.id))(versions)
        self._asked[node.id] = remote.remote()

    def _takes_part(self, node: ClusterNode) -> bool:
        """Whether a node has answered that it has the same versions. With others, it is excluded."""
        if node.id in self._good or node.id in self.excluded:
            return node.id in self._good
        if node.id not in self._asked:
            self._ask(node)
        if not self.ray.wait([self._asked[node.id]], timeout=0)[0]:
            return False
        try:
            problem = different(node.name, self.ray.get(self._asked.pop(node.id)))
        except self.ray.exceptions.RayTaskError as error:
            problem = f"{node.name}: Tengen cannot be used there: {last_line(error)}"
        except self.ray.exceptions.RayError:  # the node may be dying; otherwise it is asked again
            return False
        if problem:
            self.excluded[node.id] = problem
        else:
            self._good.add(node.id)
        return not problem


class RayCluster(CheckedNodes):
    """A cluster with room for a learner and self-play actors."""

    def __init__(self, ray: Any, settings: ClusterSettings) -> None:
        super().__init__(ray)
        self.shares: NodeShares = shares(settings, self.nodes(), self.own)
        self._seat: Any = None

    def living(self) -> set[str]:
        return {node.id for node in self.nodes()}

    def room(self) -> int:
        return sum(self.shares.room(node, node.id == self.own) for node in self.nodes())

    def idle(self) -> dict[str, str]:
        """The nodes on which no self-play actor fits, and why; the learner's node is not idle."""
        found = {node.id: self.shares.lack(node) for node in self.nodes() if node.id != self.own}
        return {node: why for node, why in found.items() if why}

    def start(self, actor: type, *arguments: Any) -> Any:
        options: dict[str, Any] = {"num_cpus": self.shares.cores, "num_gpus": self.shares.gpus, "max_concurrency": 8}
        return self.ray.remote(**options, **self.where())(actor).remote(*arguments)

    def take_learner_gpus(self) -> None:
        """Reserve the learner's GPUs on this node and let JAX, which must not have been used yet, see only those."""
        use_gpus(self.shares.learner_gpus)
        if not self.shares.learner_gpus:
            return
        here = self._on(self.own)
        seat = self.ray.remote(num_cpus=0, num_gpus=self.shares.learner_gpus, scheduling_strategy=here)(_LearnerSeat)
        self._seat = seat.remote()  # holds them for as long as this process lives
        ready = self._seat.gpus.remote()
        if not self.ray.wait([ready], timeout=_ANSWER)[0]:
            raise TengenError(
                f"the learner's {self.shares.learner_gpus:g} GPUs on this node are used by others; wait until they "
                "end, or lower cluster.learner_gpus"
            )
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, self.ray.get(ready)))


class _LearnerSeat:
    def gpus(self) -> list[Any]:
        import ray

        return ray.get_gpu_ids()


def different(node: str, versions: dict[str, str]) -> str:
    """What differs on a node from this one, in words; empty if nothing does."""
    own = {"Python": platform.python_version(), "Tengen": tengen.__version__}
    for name, version in own.items():
        there = versions.get(name, "none")
        same = there.split(".")[:2] == version.split(".")[:2] if name == "Python" else there == version
        if not same:
            return f"{node}: has {name} {there}, and this node {version}; install the same everywhere"
    return ""


@contextlib.contextmanager
def connected(address: str | None, settings: ClusterSettings) -> Iterator[RayCluster]:
    """The cluster at an address, or one of this machine alone, as in `joined`. The learner's GPUs are reserved.

    TengenError if no cluster answers, or if its nodes cannot take part.
    """
    with joined(address) as ray:
        cluster = RayCluster(ray, settings)
        cluster.take_learner_gpus()
        yield cluster


@contextlib.contextmanager
def joined(address: str | None, option: str = "--mode cluster") -> Iterator[Any]:
    """The module `ray`, connected to the cluster at the address or to one of this machine that ends with this process.

    OptionError if Ray, which that option of a command needs, is not installed, or if there is no cluster.
    """
    if address is None:
        own_token()
        os.environ.setdefault("RAY_worker_niceness", "0")  # or self-play yields to all other processes of the machine
    else:
        check(address)
    ray = library(option)
    logging.getLogger("ray").setLevel(logging.ERROR)  # it has warnings that are no matter of the user
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}
    local = {"include_dashboard": False} if address is None else {}
    for attempt in range(_ATTEMPTS):
        try:
            ray.init(address=address or "local", **quiet, **local)
            break
        except Exception as error:  # Ray has no common class for these
            if address is None and _LATE in str(error) and attempt + 1 < _ATTEMPTS:
                continue
            where = f"--address {address}" if address else "Ray could not be started on this machine"
            raise OptionError(f"{where}: {one_line(error)}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def one_line(error: BaseException) -> str:
    """The first sentence of an error of Ray, whose messages are long."""
    text = " ".join(str(error).split()).partition(". ")[0][:300]
    return f"{text}; install the same everywhere" if text.startswith("Version mismatch") else text


def _lines(error: BaseException) -> list[str]:
    if "address the out of memory issue" in str(error):  # a device without memory is an error of the task instead
        return ["Ray ended it, because its machine has too little memory left"]
    return [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]


def last_line(error: BaseException) -> str:
    """The last line of an error of Ray, which ends with the error of the task."""
    return _lines(error)[-1][:300]


def why_it_died(error: BaseException) -> str:
    """Why an actor died, in a few words of Ray."""
    lines = _lines(error)
    reasons = [line for line in lines if any(word in line.lower() for word in ("exit", "node", "kill"))]
    return " ".join((reasons or lines)[-1].split())[:160]


def described(cluster: RayCluster) -> str:
    nodes, found = cluster.nodes(), cluster.shares
    each = f"{counted(found.cores, 'core')}" + (f" and {found.gpus:g} GPU" if found.gpus else "")
    learner = f", {found.learner_gpus:g} GPU for the learner" if found.learner_gpus else ""
    return f"{counted(len(nodes), 'node')}, {counted(cluster.room(), 'self-play actor')} of {each}{learner}"


_CONNECT = 5.0  # seconds in which the address must answer
_ALIVE = "/ray.rpc.NodeInfoGcsService/CheckAlive"  # the call with which Ray's own programs begin
_MODE, _TOKEN, _TOKEN_FILE = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"


def own_token() -> None:
    """Let the Ray that this process is about to start accept this process alone.

    By default Ray writes a token into the home directory, and later clusters of the user then ask for it. It reads the
    variables when it is imported.
    """
    if _MODE not in os.environ and "ray" not in sys.modules:
        os.environ[_MODE] = "token"
        os.environ.setdefault(_TOKEN, secrets.token_hex(32))


def check(address: str) -> None:
    """OptionError unless Ray answers at `HOST:PORT` or, for `auto`, if that must be left to Ray.

    If the cluster asks for a token and there is one, Ray is told to use it.
    """
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    odd = not host or not port.isdecimal() or not 0 < int(port) < 1 << 16
    if odd or "://" in address or any(map(str.isspace, address)):
        raise OptionError(
            f"--address: expected HOST:PORT of the head node, or auto on one of its nodes, got {address!r}"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT).close()
    except (OSError, UnicodeError) as error:
        raise OptionError(
            f"--address {address}: no cluster answers there ({error}); `ray start --head` starts one"
        ) from None
    if os.environ.get("RAY_USE_TLS", "0") == "0":
        _check_ray(address)


def _check_ray(address: str) -> None:
    try:
        import grpc  # comes with Ray
    except ImportError:
        return
    code, found = grpc.StatusCode, _ask(address, "")
    if found is code.UNAUTHENTICATED:
        os.environ.setdefault(_MODE, "token")
        token = _known_token() if os.environ[_MODE].lower() == "token" else ""
        if not token:
            raise OptionError(
                f"--address {address}: the cluster asks for a token, and there is none here: set {_TOKEN}, or copy "
                f"~/.ray/auth_token from its head node; {_MODE} must be unset or token"
            )
        found = _ask(address, token)
    if found is code.UNAUTHENTICATED:
        raise OptionError(f"--address {address}: the cluster has another token than this node ({_TOKEN})")
    if found is not code.OK:
        raise OptionError(
            f"--address {address}: what answers there is not a Ray cluster, or does not respond "
            f"({found.name.replace('_', ' ').lower()}); `ray start --head` says its address"
        )


def _ask(address: str, token: str) -> Any:
    import grpc

    sent = (("authorization", f"Bearer {token}"),) if token else ()
    try:
        with grpc.insecure_channel(address) as channel:
            channel.unary_unary(_ALIVE)(b"", timeout=_CONNECT, metadata=sent)
    except grpc.RpcError as error:
        return error.code()  # type: ignore[attr-defined]
    return grpc.StatusCode.OK


def _known_token() -> str:
    """The token that Ray would use; empty if there is none."""
    if token := os.environ.get(_TOKEN, "").strip():
        return token
    path = os.environ.get(_TOKEN_FILE) or Path.home() / ".ray" / "auth_token"
    try:
        return files.read_text(path).strip()
    except (OSError, RuntimeError, TengenError, UnicodeError):
        return ""
