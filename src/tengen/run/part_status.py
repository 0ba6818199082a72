"""What parts and runs are doing, for other processes to read: RUN/parts/<part>.json, with a lease while they live.

A part removes its file when it ends. If it was killed, the file stays and its expired lease shows that (`lease.py`).
Times are durations, measured by the part itself, so clocks may differ between machines.
"""

import contextlib
import os
import re
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from tengen import files, schema
from tengen.errors import OptionError
from tengen.files import lease
from tengen.run import safe_exit
from tengen.run.children import KINDS
from tengen.run.part import Progress

FOLDER = "parts"
DRIVERS = ("fused", "roles", "sync", "async", "cluster", "daemon")
"""Kinds that stand for a whole run; the others are parts of one."""
NODE = "node"
"""The kind of the nodes of a cluster, which are in the status of its driver, under NODES."""
NODES = "nodes"
_BEAT = 1.0  # seconds between two writes, if something changed
_REST = 15.0  # seconds between two writes, if nothing did
_SILENT = 300.0  # seconds without a sign after which a part of another machine, or of an earlier boot, counts as dead
_FORGOTTEN = 86_400.0  # seconds after which its files are removed; more than the clocks of two machines may differ
_NAME = re.compile(rf"({'|'.join((*KINDS, *DRIVERS))})-([A-Za-z0-9-]{{1,80}})\.json")


@dataclass(frozen=True)
class PartStatus:
    """What one part, or the driver of a whole run, is doing."""

    kind: str
    name: str
    alive: bool = True  # False: its process has died without removing its status
    machine: str = ""
    process: int = 0
    words: str = ""
    waiting: bool = False
    seconds: float = 0.0  # how long it has been doing this; on another machine, as of when it wrote this
    running: float = 0.0  # seconds since it was started, likewise
    done: int | float | None = None
    of: int | float | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    restarts: int = 0  # by its driver

    @property
    def part(self) -> str:
        """`selfplay 3f9a01c2`; just `gate`, since there is only one."""
        return self.kind if self.name in (self.kind, "all") else f"{self.kind} {self.name}"

    @property
    def doing(self) -> str:
        return f"waiting: {self.words}" if self.waiting else self.words

    @property
    def share(self) -> float | None:
        """How much of the work is done, 0 to 1; None if that is not known."""
        return min(max(self.done / self.of, 0.0), 1.0) if self.done is not None and self.of else None

    def values(self) -> dict[str, Any]:
        """For programs, without what only its driver knows."""
        return {name: value for name, value in vars(self).items() if name != "restarts"}

    def nodes(self) -> "list[PartStatus]":
        """The nodes that the status of a cluster's driver describes; the file may hold anything."""
        nodes, found = self.figures.get(NODES), []
        for name, about in nodes.items() if isinstance(nodes, Mapping) else ():
            with contextlib.suppress(OptionError, TypeError):
                where = {"kind": NODE, "name": str(name), "alive": self.alive, "machine": str(name)}
                found.append(schema.from_data(PartStatus, {**about, **where, "process": self.process}))
        return found


class StatusWriter:
    """Writes the status of one part in this process. A failing write (a full disk) never stops the part."""

    def __init__(self, base: Path, kind: str, name: str) -> None:
        self._folder = base / FOLDER
        self._what = f"{kind}-{name}"
        if not _NAME.fullmatch(f"{self._what}.json"):
            raise ValueError(f"no name for a part: {self._what}")
        self._path = self._folder / f"{self._what}.json"
        self._started = self._since = time.monotonic()
        self._progress = Progress("starting")
        self._written: tuple[float, Progress | None] = (-_REST, None)
        self._lock, self._over = threading.Lock(), threading.Event()
        self._closing, self._before = contextlib.ExitStack(), contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            sweep(self._folder)
            self._closing.enter_context(lease.held(self._folder, self._what))
        thread = threading.Thread(target=self._keep, name="part-status", daemon=True)
        thread.start()
        self._closing.callback(thread.join)
        self._closing.callback(self._over.set)
        self._before.enter_context(safe_exit.before(self._end))
        return self

    def __exit__(self, *exception: object) -> None:
        self._before.close()
        self._end()

    def _end(self) -> None:
        self._closing.close()
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def show(self, progress: Progress) -> None:
        """Replace the status. Cheap: a thread writes it."""
        with self._lock:
            if (progress.words, progress.worked) != (self._progress.words, self._progress.worked) and not (
                self._progress.worked is progress.worked is False and alike(self._progress.words, progress.words)
            ):
                self._since = time.monotonic()
            self._progress = progress

    @property
    def seconds(self) -> float:
        """How long it has been doing or waiting for the same thing."""
        with self._lock:
            return time.monotonic() - self._since

    def _keep(self) -> None:
        while True:
            self._write()
            if self._over.wait(_BEAT):
                return

    def _write(self) -> None:
        with self._lock:
            now, progress, since = time.monotonic(), self._progress, self._since
        before, written = self._written
        if progress == written and now - before < _REST:
            return
        about = {
            "schema": 1,
            "machine": socket.gethostname(),
            "process": os.getpid(),
            "words": progress.words,
            "waiting": not progress.worked,
            "seconds": round(now - since, 1),
            "running": round(now - self._started, 1),
            "done": progress.done,
            "of": progress.of,
            "figures": dict(progress.figures),
        }
        with contextlib.suppress(OSError, ValueError, TypeError):
            schema.write_json(self._path, about, indent=None)
            self._written = now, progress


def look(base: Path) -> list[PartStatus]:
    """All parts of a run that are alive or were killed, in the order of the pipeline."""
    watch = lease.LeaseWatch(minutes=5)
    folder = base / FOLDER
    found = []
    for path in sorted(files.inside(folder)):
        match = _NAME.fullmatch(path.name)
        if not match:
            continue
        with contextlib.suppress(OSError, OptionError):
            data = schema.read_json(dict[str, Any], path)
            if data.get("schema") != 1 or "words" not in data:
                continue
            about = schema.from_data(PartStatus, {**data, "kind": match[1], "name": match[2]})
            leases = watch.living(folder, path.stem)
            age = time.time() - path.stat().st_mtime
            alive = any(map(lease.is_of_this_machine, leases)) or (bool(leases) and age < _SILENT)
            age = age if alive and about.machine == socket.gethostname() else 0.0
            age = min(max(age, 0.0), _REST)
            found.append(replace(about, alive=alive, seconds=about.seconds + age, running=about.running + age))
    found += [node for part in found if part.kind in DRIVERS for node in part.nodes()]
    order = (*DRIVERS, NODE, *KINDS)
    return sorted(found, key=lambda part: (order.index(part.kind), part.name))


def sweep(folder: Path) -> None:
    watch = lease.LeaseWatch(minutes=5)
    for path in files.inside(folder):
        if not _NAME.fullmatch(path.name):
            continue
        leases = watch.living(folder, path.stem)
        with contextlib.suppress(OSError):
            silent = time.time() - path.stat().st_mtime > _FORGOTTEN
            if not leases or (silent and not any(map(lease.is_of_this_machine, leases))):
                for each in (*leases, path):
                    each.unlink()
    watch.sweep(folder)


def alike(one: str, other: str) -> bool:
    """Whether two texts differ only in their numbers."""
    return re.sub(r"[\d,.]+", "#", one) == re.sub(r"[\d,.]+", "#", other)
