"""Trials on a Ray cluster. Ray places them, and restarts them elsewhere when a worker or a node dies."""

import contextlib
import io
import os
import secrets
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tengen import files
from tengen.cluster.connection import CheckedNodes, last_line
from tengen.cluster.nodes import ClusterNode
from tengen.config.source import RUN_FILE
from tengen.cores import LIMIT
from tengen.errors import OptionError, TengenError
from tengen.files import lease
from tengen.jax_setup import gpu_share
from tengen.sweep.folder import replace_run
from tengen.sweep.trial import Ended, MachineShare, TrialResult, TrialSpec, run_trial
from tengen.words import counted

_ANSWER = 5.0  # seconds within which trials must confirm that they stop
_RETRIES = 3  # times that a trial goes on elsewhere after its worker has died
_TOKEN = ".cluster"  # a file in the sweep's folder by which a node sees that it has the same folder
_RUN, _LOG = "run", "log"  # names in an archive


@dataclass(frozen=True)
class TrialShare:
    """What Ray reserves for a trial."""

    cpus: float
    gpus: float

    def __str__(self) -> str:
        return f"{counted(self.cpus, 'core')} and {counted(self.gpus, 'GPU')}"

    def environment(self, present: Mapping[str, str]) -> dict[str, str]:
        return gpu_share(self.gpus, present) | {LIMIT: str(max(int(self.cpus), 1))}

    def room(self, nodes: Iterable[ClusterNode]) -> int:
        wanted = [((node.cpus, self.cpus), (node.gpus, self.gpus)) for node in nodes]
        return sum(min(int(there / share + 1e-6) for there, share in node if share) for node in wanted)


class TrialActor:
    """Runs one trial on a node of the cluster; a second thread receives `stop`."""

    def __init__(self) -> None:
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def run(self, spec: TrialSpec, share: TrialShare, token: str, packed: bytes) -> tuple[TrialResult | None, bytes]:
        """The result, and the archive of the run if this node does not see the sweep's folder.

        None if it does not, and there is nothing packed to go on from.
        """
        place = MachineShare(environment=share.environment(os.environ))
        with contextlib.suppress(OSError, TengenError):
            if files.read_text(Path(spec.config).with_name(_TOKEN)) == token:
                return run_trial(spec, place, self._stopping.is_set), b""
        if not packed:
            return None, b""
        with lease.temporary("trial") as folder:
            unpack(packed, Path(folder))
            here = {"config": RUN_FILE, "folder": _RUN, "log": _LOG}
            local = replace(spec, **{name: str(Path(folder) / path) for name, path in here.items()})
            result = run_trial(local, place, self._stopping.is_set)
            return result, pack({name: Path(folder) / name for name in (_RUN, _LOG)})


class RayExecutor:
    """Runs trials on the cluster that this process is connected to: `most` at once, or as many as fit."""

    def __init__(self, cluster: CheckedNodes, folder: Path, share: TrialShare, most: int | None = None) -> None:
        self._cluster, self._ray = cluster, cluster.ray
        self._folder, self._share, self._most = folder, share, most
        self._running: dict[Any, tuple[TrialSpec, Any]] = {}  # by the reference to the result: the trial, its actor
        self._stopping = False
        self._packs = False  # whether nodes were met that do not see the folder
        self._token = secrets.token_hex(8)
        if most is None and not self._room():
            raise OptionError(f"no node of the cluster has {share} for a trial")

    def _room(self) -> int:
        return self._share.room(self._cluster.nodes())

    @property
    def free(self) -> int:
        room = self._room()  # also looks for nodes that have joined and must be left out
        most = max(room, 1) if self._most is None else self._most
        return 0 if self._stopping else max(most - len(self._running), 0)

    def submit(self, spec: TrialSpec) -> None:
        files.write_bytes(self._folder / _TOKEN, self._token.encode())
        packed = b""
        if self._packs:
            packed = pack({RUN_FILE: Path(spec.config), _RUN: Path(spec.folder), _LOG: Path(spec.log)})
        options = {"num_cpus": self._share.cpus, "num_gpus": self._share.gpus, "max_concurrency": 2}
        again = {"max_restarts": _RETRIES, "max_task_retries": _RETRIES}
        actor = self._ray.remote(**options, **again, **self._cluster.where())(TrialActor).remote()
        found = actor.run.remote(spec, self._share, self._token, packed)
        self._running[found] = spec, actor

    def collect(self, timeout: float) -> list[Ended]:
        if not self._running:
            time.sleep(timeout)
            return []
        ready, _ = self._ray.wait(list(self._running), num_returns=len(self._running), timeout=0)
        if not ready:
            ready, _ = self._ray.wait(list(self._running), timeout=timeout)
        return [ended for reference in ready if (ended := self._ended(reference)) is not None]

    def _ended(self, reference: Any) -> Ended | None:
        """A trial and its result; None if it was submitted again, with its run directory."""
        spec, actor = self._running.pop(reference)
        try:
            result, packed = self._ray.get(reference)
            if result is None and not self._stopping:
                self._packs = True
                self._ray.kill(actor)
                self.submit(spec)
                return None
            if packed:
                self._take(spec, packed)
            result = result or TrialResult("stopped")
        except self._ray.exceptions.RayError as error:
            why = f"its worker died {_RETRIES + 1} times, or cannot run it: {last_line(error)}"
            result = TrialResult("stopped") if self._stopping else TrialResult("failed", why=why)
        except (TengenError, OSError) as error:
            result = TrialResult("failed", why=str(error).splitlines()[0])
        self._ray.kill(actor)
        return spec, result

    def _take(self, spec: TrialSpec, packed: bytes) -> None:
        """Replace the run directory here by the one that a node sent."""
        target = Path(spec.folder)
        files.make_folder(target.parent)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", suffix=".part", dir=target.parent) as folder:
            unpack(packed, Path(folder))
            if (Path(folder) / _LOG).exists():
                files.make_folder(Path(spec.log).parent)
                (Path(folder) / _LOG).replace(spec.log)
            if (Path(folder) / _RUN).exists():
                files.sync_tree(Path(folder) / _RUN)
                replace_run(Path(folder) / _RUN, target)

    def stop(self) -> None:
        if self._stopping:
            return
        self._stopping = True
        asked = {actor.stop.remote(): actor for _, actor in self._running.values()}
        if asked:
            _, silent = self._ray.wait(list(asked), num_returns=len(asked), timeout=_ANSWER)
            for reference in silent:  # these wait for room, or for a node that has gone
                self._ray.kill(asked[reference])


def pack(contents: Mapping[str, Path]) -> bytes:
    """An archive of these files and folders, by their names in it, as far as they exist."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, path in contents.items():
            if path.exists():
                archive.add(path, name, filter=lambda info: info if info.isreg() or info.isdir() else None)
    return out.getvalue()


def unpack(packed: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")


def trial_share(nodes: Sequence[ClusterNode], cpus: float | None, gpus: float | None) -> TrialShare:
    """What a trial gets: by default a GPU or, on a cluster without any, two cores."""
    if gpus is None:
        gpus = 1.0 if any(node.gpus for node in nodes) else 0.0
    if cpus is None:
        cpus = 1.0 if gpus else min(2.0, max((node.cpus for node in nodes), default=1.0)) or 1.0
    for name, value in (("--trial-cores", cpus), ("--trial-gpus", gpus)):
        if not (0 <= value <= 1024) or (value > 1 and value != int(value)):
            raise OptionError(f"{name}: expected a whole number, or a share below 1, got {value:g}")
    if not cpus and not gpus:
        raise OptionError("--trial-cores: expected more than 0, because a trial without a GPU needs a core")
    return TrialShare(cpus, gpus)
