"""Rows and games of chunks that were asked before, so that `tengen status` is quick about runs with many chunks.

It is kept with the caches of the user, not in the run, which those who look at it may not be allowed to write to. A
chunk is known by its name, inode, size and time of change; one that is not known exactly so is asked again.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from tengen import files

_SCHEMA = 1
_WORTH = 500  # new chunks, for which writing a file is worth it
_LARGEST = 2**28  # bytes: what is larger is no memory of ours
Counts = tuple[int, int]


def place(base: Path) -> Path | None:
    """Where the memory of a run directory is; None if there is no place for it."""
    with contextlib.suppress(OSError, RuntimeError):  # somebody without a home, say
        name = hashlib.sha256(os.fsencode(base.resolve())).hexdigest()[:16]
        return files.cache_folder() / "chunks" / f"{name}.json"
    return None


class ChunkCounts:
    """What chunks have said, over processes. Errors of the file are no reason to fail: it is then as good as empty."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = _read(path)
        self._now: dict[str, list[int]] = {}
        self._new = 0

    def ask(self, path: Path, count: Callable[[], Counts]) -> Counts:
        """What is remembered about a chunk, or else what `count` says."""
        try:
            status = os.stat(path)
        except OSError:
            return count()
        name, key = f"{path.parent.name}/{path.name}", [status.st_ino, status.st_size, status.st_mtime_ns]
        known = self._before.get(name)
        if known is None or known[:3] != key:
            known = [*key, *count()]
            self._new += 1
        self._now[name] = known
        return known[3], known[4]

    def keep(self) -> None:
        """Write it down, if there is much that is new."""
        if self._new < _WORTH:
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            files.write_bytes(self._path, json.dumps({"schema": _SCHEMA, "chunks": self._now}).encode())
            self._new = 0


def _read(path: Path) -> dict[str, list[int]]:
    with contextlib.suppress(OSError, ValueError, RecursionError):
        found = json.loads(files.read_bytes(path, _LARGEST))
        if isinstance(found, dict) and found.get("schema") == _SCHEMA and isinstance(found.get("chunks"), dict):
            return {name: each for name, each in found["chunks"].items() if _is_good(each)}
    return {}


def _is_good(each: object) -> bool:
    return isinstance(each, list) and len(each) == 5 and all(type(number) is int and number >= 0 for number in each)
