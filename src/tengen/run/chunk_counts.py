"""A cache of how many rows and games each chunk has, so that `tengen status` is quick for runs with many chunks.

It is in the cache folder of the user, not in the run, which may be read-only. A chunk is identified by its name, inode,
size and time of change.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from tengen import files

_SCHEMA = 1
_WORTH = 500  # new chunks that make writing worthwhile
_LARGEST = 2**28  # bytes: a larger file is not ours
Counts = tuple[int, int]


def place(base: Path) -> Path | None:
    """The cache file of a run directory; None if there is no place for it."""
    with contextlib.suppress(OSError, RuntimeError):  # a user without a home, for example
        name = hashlib.sha256(os.fsencode(base.resolve())).hexdigest()[:16]
        return files.cache_folder() / "chunks" / f"{name}.json"
    return None


class ChunkCounts:
    """The counts of a run's chunks, shared by all processes. A file that cannot be used counts as empty."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = _read(path)
        self._now: dict[str, list[int]] = {}
        self._new = 0

    def ask(self, path: Path, count: Callable[[], Counts]) -> Counts:
        """The known counts of a chunk, or else the result of `count`."""
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
        """Write the file, if there are many new counts."""
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
