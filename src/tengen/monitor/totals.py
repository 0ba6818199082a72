"""What a run has produced so far, counted in its folders. Changes nothing; only `curve` needs JAX."""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen import files
from tengen.data.format.chunk import ChunkError, CorruptChunk, Meta, peek_meta
from tengen.data.store.store import Store
from tengen.files import CORRUPT
from tengen.match import results
from tengen.match.ratings import Ratings, rate
from tengen.monitor.summary import RatingPoint
from tengen.run import networks
from tengen.run.metrics import finite, is_number

SELFPLAY = "selfplay"
_SCHEMA = 1
_WORTH = 500  # new chunks that make writing the memory worthwhile
_LARGEST = 2**28  # bytes: a larger file is not ours
Counts = tuple[int, int]
"""Rows and games."""


@dataclass(frozen=True)
class PlayedTotals:
    """Everything that was played and written."""

    rows: int = 0
    games: int = 0  # finished, also those without rows
    chunks: int = 0
    corrupt: tuple[Path, ...] = ()  # chunks that cannot be used, whether set aside or not
    unreadable: tuple[str, ...] = ()  # why others could not be read


def memory_of(base: Path) -> Path | None:
    """The file that remembers the counts of a run's chunks; None if there is no place for it.

    It is in the cache folder of the user, not in the run, which may be read-only.
    """
    with contextlib.suppress(OSError, RuntimeError):  # a user without a home, for example
        name = hashlib.sha256(os.fsencode(base.resolve())).hexdigest()[:16]
        return files.cache_folder() / "chunks" / f"{name}.json"
    return None


class TotalsCounter:
    """Counts the rows and games of a run; each chunk is read once."""

    def __init__(self, base: Path, memory: Path | None = None) -> None:
        """`memory`: a file that keeps the counts of thousands of chunks for the next process (`memory_of`)."""
        self._store, self._memory = Store(base / SELFPLAY), memory
        self._known: dict[Path, Counts | None] = {}  # None: corrupt
        self._before = {} if memory is None else _remembered(memory)
        self._now: dict[str, list[int]] = {}  # what the next process is to know
        self._new = 0

    def look(self) -> PlayedTotals:
        """Count. TengenError if a folder cannot be read."""
        known: dict[Path, Counts | None] = {}  # without those that are gone
        unreadable = []
        files = list(self._store.files())
        for chunk in self._store.chunks(files):
            path = chunk.path
            try:
                known[path] = self._known[path] if path in self._known else self._count(path)
            except CorruptChunk:
                known[path] = None
            except ChunkError as error:
                if path.exists():
                    unreadable.append(str(error))
        self._known = known
        self._keep()
        good = [counts for counts in known.values() if counts is not None]
        corrupt = [path for path, counts in known.items() if counts is None]
        corrupt += [path for path in files if path.name.endswith(CORRUPT)]
        return PlayedTotals(
            rows=sum(rows for rows, _ in good),
            games=sum(games for _, games in good),
            chunks=len(good),
            corrupt=tuple(sorted(corrupt)),
            unreadable=tuple(unreadable),
        )

    def _count(self, path: Path) -> Counts:
        """The counts of a chunk, from the memory if it is still the same file. Raises ChunkError."""
        try:
            status = os.stat(path)
        except OSError:
            return _counts(peek_meta(path))
        name, key = f"{path.parent.name}/{path.name}", [status.st_ino, status.st_size, status.st_mtime_ns]
        known = self._before.get(name)
        if known is None or known[:3] != key:
            known = [*key, *_counts(peek_meta(path))]
            self._new += 1
        self._now[name] = known
        return known[3], known[4]

    def _keep(self) -> None:
        if self._memory is None or self._new < _WORTH:
            return
        with contextlib.suppress(OSError):
            self._memory.parent.mkdir(parents=True, exist_ok=True)
            files.write_bytes(self._memory, json.dumps({"schema": _SCHEMA, "chunks": self._now}).encode())
            self._new = 0


def _counts(meta: Meta) -> Counts:
    finished = meta.more.get("finished")
    return meta.rows, max(finished, meta.games) if type(finished) is int else meta.games


def _remembered(path: Path) -> dict[str, list[int]]:
    """The content of a memory; empty if it cannot be used."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        found = json.loads(files.read_bytes(path, _LARGEST))
        if isinstance(found, dict) and found.get("schema") == _SCHEMA and isinstance(found.get("chunks"), dict):
            return {name: each for name, each in found["chunks"].items() if _is_good(each)}
    return {}


def _is_good(each: object) -> bool:
    return isinstance(each, list) and len(each) == 5 and all(type(number) is int and number >= 0 for number in each)


def ratings(base: Path) -> Ratings | None:
    """The ratings of all networks that played; None if none did. TengenError if the results cannot be read."""
    return rate(results.read(base / results.OF_RUN))


def curve(base: Path, ratings: Ratings | None) -> tuple[RatingPoint, ...]:
    """The ratings of accepted networks over the time of the run, which is in their files. Needs JAX."""
    from tengen.nets import saving

    known = {rating.name: rating for rating in ratings.players} if ratings else {}
    found = []
    for entry in networks.accepted(base):
        if entry.name in known:
            seconds = saving.read(entry.path).info.get("seconds")
            if (seconds := finite(seconds)) is not None and seconds >= 0:
                found.append(RatingPoint(float(seconds), known[entry.name].elo, known[entry.name].error))
    return tuple(found)


def part_figures(line: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """{part: figures} of a line of the metrics of a run in parts."""
    return {name: mapping(part, "figures") for name, part in mapping(line, "parts").items()}


def learner_figures(line: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of the (main) trainer of a run in parts; empty for other runs."""
    trainers = {name: figures for name, figures in part_figures(line).items() if name.startswith("train")}
    main = (figures for name, figures in trainers.items() if name.startswith("train main") and figures)
    return next(main, next(iter(trainers.values()), {}))


def losses(line: Mapping[str, Any]) -> dict[str, float]:
    """The loss and its parts by name, in a line of progress or of an epoch: of the run itself, or of its trainer."""
    learner = learner_figures(line)
    parts = {**mapping(learner, "losses"), **mapping(line, "losses")}
    known = (line.get("loss"), parts.pop("loss", None), learner.get("loss"))
    found = {"loss": next((loss for loss in known if loss is not None), None), **parts}
    return {name: loss for name, loss in found.items() if is_number(loss)}


def mapping(data: Any, name: str) -> dict[str, Any]:
    found = data.get(name) if isinstance(data, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}
