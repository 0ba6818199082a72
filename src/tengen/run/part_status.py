"""What parts and runs in one process are doing, for others to see: RUN/parts/<part>.json, and a lease while they live.

    with Notice(base, "train", "main") as notice:
        notice.show(Progress("trained 4,096 of 20,000 samples", ...))

    for seen in look(base): print(seen.part, seen.words)

A part that ends takes its notice away; one that was killed leaves it, and its dead lease tells (`lease.py`). Times are
durations, measured by the part that waits, so clocks may differ.
"""

import contextlib
import json
import os
import re
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tengen import files
from tengen.files import lease
from tengen.run import safe_exit
from tengen.run.part import Progress

FOLDER = "parts"
DRIVERS = ("fused", "roles", "sync", "async", "daemon")
"""Kinds of notices of whole runs; the others are of parts."""
_SCHEMA = 1
_BEAT = 1.0  # seconds between two writings of what changed
_REST = 15.0  # seconds between two of what did not
_NAME = re.compile(r"(selfplay|shuffle|train|export|gate|fused|roles|sync|async|daemon)-([A-Za-z0-9-]{1,80})\.json")

# What files that anybody may have written give, besides what is no JSON.
_GARBAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class PartStatus:
    """What a notice says."""

    kind: str
    name: str
    alive: bool  # False: its process is gone, without having said so
    machine: str
    process: int
    words: str
    waiting: bool
    seconds: float  # for how long it has said the same; on another machine, when it wrote this
    running: float  # seconds since it was started, likewise
    done: float | None = None
    of: float | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def part(self) -> str:
        """`selfplay 3f9a01c2`; `gate`, of which there is but one."""
        return self.kind if self.name in (self.kind, "all") else f"{self.kind} {self.name}"


class StatusWriter:
    """Of one part in this process. Failing to write it (a full disk) never stops the part."""

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
        thread = threading.Thread(target=self._keep, name="notice", daemon=True)
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
        """From now on. Cheap: a thread writes it."""
        with self._lock:
            if (progress.words, progress.worked) != (self._progress.words, self._progress.worked) and not (
                self._progress.worked is progress.worked is False and alike(self._progress.words, progress.words)
            ):
                self._since = time.monotonic()
            self._progress = progress

    @property
    def seconds(self) -> float:
        """For how long it has been waiting for the same, or doing it."""
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
            "schema": _SCHEMA,
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
            files.write_bytes(self._path, json.dumps(about, allow_nan=False).encode())
            self._written = now, progress


def look(base: Path) -> list[PartStatus]:
    """All parts of a run that are there, or were killed; the order is that of the ring."""
    watch = lease.LeaseWatch(minutes=5)
    folder = base / FOLDER
    found = []
    for path in sorted(files.inside(folder)):
        match = _NAME.fullmatch(path.name)
        if not match:
            continue
        with contextlib.suppress(*_GARBAGE):
            about = json.loads(files.read_bytes(path))
            if about["schema"] != _SCHEMA:
                continue
            alive = bool(watch.living(folder, path.stem))
            age = time.time() - path.stat().st_mtime if alive and about["machine"] == socket.gethostname() else 0.0
            age = min(max(age, 0.0), _REST)
            found.append(
                PartStatus(
                    kind=match[1],
                    name=match[2],
                    alive=alive,
                    machine=str(about["machine"]),
                    process=int(about["process"]),
                    words=str(about["words"]),
                    waiting=bool(about["waiting"]),
                    seconds=float(about["seconds"]) + age,
                    running=float(about["running"]) + age,
                    done=about["done"],
                    of=about["of"],
                    figures=dict(about["figures"]),
                )
            )
    order = (*DRIVERS, "selfplay", "shuffle", "train", "export", "gate")
    return sorted(found, key=lambda seen: (order.index(seen.kind), seen.name))


def sweep(folder: Path) -> None:
    """Remove the notices of the dead, with their leases."""
    watch = lease.LeaseWatch(minutes=5)
    for path in files.inside(folder):
        if _NAME.fullmatch(path.name) and not watch.living(folder, path.stem):
            with contextlib.suppress(OSError):
                path.unlink()
    watch.sweep(folder)


def alike(one: str, other: str) -> bool:
    """Whether two texts differ in numbers alone: the same is waited for."""
    return re.sub(r"[\d,.]+", "#", one) == re.sub(r"[\d,.]+", "#", other)
