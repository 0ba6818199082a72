"""Leases: a process says that it uses a folder, so that no other process removes it.

A lease is an empty file whose name tells who holds it. The holder changes its time every BEAT seconds, and removes it
at the end. Others recognise the lease of a killed holder:

- on this machine: its process is gone.
- on another machine: the file has not changed for some minutes by the clock of the watching process. The times are
  counts and are only compared with each other, so clocks may differ.

Empty files need no space, so a full disk ends no lease, and they are never half-written.
"""

import contextlib
import functools
import hashlib
import itertools
import os
import re
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tengen import files

BEAT = 30.0  # seconds
_NAME = re.compile(r"([A-Za-z0-9-]+)~([0-9a-f]{16})~(\d{1,9})~(\d*)\.lease")  # what, machine, process, its start
_FOLDER = re.compile(r"tengen-([a-z]+)~([0-9a-f]{16})~(\d{1,9})~(\d*)~\w+")  # likewise


@contextlib.contextmanager
def held(folder: Path, what: str, beat: float = BEAT) -> Iterator[None]:
    """Hold a lease in `folder`, which is made, but not the folders above it."""
    path = folder / f"{what}~{_machine()}~{os.getpid()}~{_started(os.getpid())}.lease"
    with files.writing(folder):
        folder.mkdir(exist_ok=True)
        path.touch(exist_ok=False)
    ended = threading.Event()

    def keep() -> None:
        for count in itertools.count():
            with contextlib.suppress(OSError):
                os.utime(path, (count, count))
            if ended.wait(beat):
                return

    thread = threading.Thread(target=keep, name="tengen-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        files.remove(path)


class LeaseWatch:
    """Tells living leases from dead ones. Keep it: those of other machines can only be judged after a while."""

    def __init__(self, minutes: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = 60 * minutes
        self._clock = clock
        self._seen: dict[Path, tuple[int, float]] = {}  # its time, and when our clock first saw it with that time

    def living(self, folder: Path, what: str | None = None) -> list[Path]:
        """Leases in `folder`, all or those on `what`, whose holders may be alive."""
        return [path for path, match in _leases(folder) if what in (None, match[1]) and self._lives(path, match)]

    def sweep(self, folder: Path) -> None:
        for path, match in _leases(folder):
            if not self._lives(path, match):
                files.remove(path)

    def _lives(self, path: Path, match: re.Match[str]) -> bool:
        if match[2] == _machine():
            return _runs(match)
        try:
            changed = path.stat().st_mtime_ns
        except FileNotFoundError:
            return False
        except OSError:
            return True  # unknown, so nothing may be removed
        before = self._seen.get(path)
        if before is None or before[0] != changed:
            self._seen[path] = before = (changed, self._clock())
        return self._clock() - before[1] < self._seconds


def is_of_this_machine(path: Path) -> bool:
    """Whether the holder of a lease was started on this machine, since its last start."""
    match = _NAME.fullmatch(path.name)
    return match is not None and match[2] == _machine()


def temporary(kind: str) -> tempfile.TemporaryDirectory[str]:
    """A temporary folder of this process. Those of the same kind that killed processes have left are removed."""
    for path in files.inside(Path(tempfile.gettempdir())):
        match = _FOLDER.fullmatch(path.name)
        if match and (match[1], match[2]) == (kind, _machine()) and not _runs(match):
            shutil.rmtree(path, ignore_errors=True)  # it may belong to another user
    return tempfile.TemporaryDirectory(prefix=f"tengen-{kind}~{_machine()}~{os.getpid()}~{_started(os.getpid())}~")


def _leases(folder: Path) -> list[tuple[Path, re.Match[str]]]:
    with contextlib.suppress(NotADirectoryError):
        return [(path, match) for path in sorted(files.inside(folder)) if (match := _NAME.fullmatch(path.name))]
    return []


@functools.cache
def _machine() -> str:
    """Where process numbers mean the same: this computer since it was started, or this container on it."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(files.read_text("/proc/sys/kernel/random/boot_id"))
        parts.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def _runs(match: re.Match[str]) -> bool:
    """Whether a process of this machine is alive. Numbers are used again, so its start must be the same too."""
    return _exists(int(match[3])) and _started(int(match[3])) in ("", match[4])


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it exists, but belongs to another user
    return True


def _started(process: int) -> str:
    """When a process was started, in ticks since the machine was; empty if the system does not say."""
    try:
        # The name of the program is in brackets and may contain anything.
        return files.read_text(f"/proc/{process}/stat").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
