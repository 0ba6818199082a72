"""What a run has made so far, by what lies in its folders. Nothing is changed, and only `curve` needs JAX."""

import math
from dataclasses import dataclass
from pathlib import Path

from tengen import arena
from tengen.arena.ratings import Ratings, anchor
from tengen.data import glance
from tengen.data.chunk import ChunkError, CorruptChunk, Meta
from tengen.data.store import CORRUPT, Store, inside
from tengen.loop.ring import models
from tengen.loop.summary import Point

SELFPLAY = "selfplay"
RESULTS = Path("ratings", "results.jsonl")


@dataclass(frozen=True)
class Played:
    """All that was played and written down."""

    rows: int = 0
    games: int = 0  # finished, also those without rows
    chunks: int = 0
    corrupt: tuple[Path, ...] = ()  # chunks that are no good, whether set aside or not
    unreadable: tuple[str, ...] = ()  # why others could not be read


class Counter:
    """Counts the rows and games of a run; each chunk is asked once."""

    def __init__(self, base: Path) -> None:
        self._store = Store(base / SELFPLAY)
        self._known: dict[Path, tuple[int, int] | None] = {}  # rows and games; None: no good

    def look(self) -> Played:
        """As it is now. TengenError if a folder cannot be read."""
        known: dict[Path, tuple[int, int] | None] = {}  # without those that are gone
        unreadable = []
        for chunk in self._store.chunks():
            path = chunk.path
            try:
                known[path] = self._known[path] if path in self._known else _count(glance.read_meta(path))
            except CorruptChunk:
                known[path] = None
            except ChunkError as error:
                if path.exists():
                    unreadable.append(str(error))
        self._known = known
        good = [counts for counts in known.values() if counts is not None]
        aside = [path for folder in inside(self._store.folder) if folder.is_dir() for path in inside(folder)]
        corrupt = [path for path, counts in known.items() if counts is None]
        corrupt += [path for path in aside if path.name.endswith(CORRUPT)]
        return Played(
            rows=sum(rows for rows, _ in good),
            games=sum(games for _, games in good),
            chunks=len(good),
            corrupt=tuple(sorted(corrupt)),
            unreadable=tuple(unreadable),
        )


def _count(meta: Meta) -> tuple[int, int]:
    finished = meta.more.get("finished")
    return meta.rows, max(finished, meta.games) if type(finished) is int else meta.games


def ratings(base: Path) -> Ratings | None:
    """Of all networks that played matches; None if none did. TengenError if the results cannot be read."""
    results = arena.read(base / RESULTS)
    return arena.fit(results, anchor(results)).centred() if results else None


def curve(base: Path, ratings: Ratings | None) -> tuple[Point, ...]:
    """The accepted networks that were rated, over the time of the run as their files tell it. Needs JAX."""
    from tengen.nets import saving

    known = {rating.name: rating for rating in ratings.players} if ratings else {}
    found = []
    for entry in models.accepted(base):
        if entry.name in known:
            seconds = saving.read(entry.path).info.get("seconds")
            if isinstance(seconds, int | float) and 0 <= seconds < math.inf:
                found.append(Point(float(seconds), known[entry.name].elo, known[entry.name].error))
    return tuple(found)
