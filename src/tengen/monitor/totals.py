"""What a run has produced so far, counted in its folders. Changes nothing; only `curve` needs JAX."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen.data.format.chunk import ChunkError, CorruptChunk, Meta, peek_meta
from tengen.data.store.store import Store
from tengen.files import CORRUPT
from tengen.match import results
from tengen.match.ratings import Ratings, rate
from tengen.monitor.summary import RatingPoint
from tengen.run import networks
from tengen.run.chunk_counts import ChunkCounts
from tengen.run.metrics import finite, is_number

SELFPLAY = "selfplay"


@dataclass(frozen=True)
class PlayedTotals:
    """Everything that was played and written."""

    rows: int = 0
    games: int = 0  # finished, also those without rows
    chunks: int = 0
    corrupt: tuple[Path, ...] = ()  # chunks that cannot be used, whether set aside or not
    unreadable: tuple[str, ...] = ()  # why others could not be read


class TotalsCounter:
    """Counts the rows and games of a run; each chunk is read once."""

    def __init__(self, base: Path, memory: Path | None = None) -> None:
        """`memory`: a file that keeps the counts of thousands of chunks for the next process."""
        self._store = Store(base / SELFPLAY)
        self._known: dict[Path, tuple[int, int] | None] = {}  # rows and games; None: corrupt
        self._memory = None if memory is None else ChunkCounts(memory)

    def look(self) -> PlayedTotals:
        """Count. TengenError if a folder cannot be read."""
        known: dict[Path, tuple[int, int] | None] = {}  # without those that are gone
        unreadable = []
        files = list(self._store.files())
        for chunk in self._store.chunks(files):
            path = chunk.path
            try:
                known[path] = self._known[path] if path in self._known else self._ask(path)
            except CorruptChunk:
                known[path] = None
            except ChunkError as error:
                if path.exists():
                    unreadable.append(str(error))
        self._known = known
        if self._memory is not None:
            self._memory.keep()
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

    def _ask(self, path: Path) -> tuple[int, int]:
        """Rows and games of a chunk. Raises ChunkError."""
        if self._memory is None:
            return _count(peek_meta(path))
        return self._memory.ask(path, lambda: _count(peek_meta(path)))


def _count(meta: Meta) -> tuple[int, int]:
    finished = meta.more.get("finished")
    return meta.rows, max(finished, meta.games) if type(finished) is int else meta.games


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
