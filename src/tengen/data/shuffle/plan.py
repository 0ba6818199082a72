"""What a shuffle would read, write and need, and which rows are drawn for which file. Nothing on the disk changes.

Every order of the drawn rows over the files is equally likely; docs/shuffle.md says how they are drawn.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tengen.config.settings.data import WindowSettings
from tengen.config.settings.parts import ShuffleSettings
from tengen.cores import cores
from tengen.data.format import chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.loader.sources import split_of
from tengen.data.store.store import Chunk, Store
from tengen.data.store.window import power_law
from tengen.errors import OptionError
from tengen.words import in_bytes

SIDES = ("train", "validation")
_USED = 0.85  # share of the memory that is planned with; the allocator and NumPy need some in passing
_CHUNK_COPIES = 2  # arrays of a chunk that is being read, and what is needed to check them
_FILE_COPIES = 2  # rows of a file that is being written, as they came and in order
_ORDER_BYTES = 25  # per row, for its place, whether it has come, and how many have before it
_MOST = 10**9  # NumPy draws without replacement from fewer


class ShuffleProblem(NamedTuple):
    """A chunk that is not used."""

    path: Path
    reason: str
    corrupt: bool  # and so to be set aside


class ShuffleSource(NamedTuple):
    """A chunk that can be used."""

    chunk: Chunk
    rows: int  # the newest of it, which are in the window
    bytes: int  # of all its rows in memory, with fields and boards that are not used
    remark: str = ""  # about rows of it that are not used
    skipped: int = 0  # its older rows


class WindowSurvey:
    """The chunks of a store. Keep it: each chunk is read once, since chunks never change."""

    def __init__(self, store: Store, form: RowFormat, game: GameIdentity, max_chunk_rows: int | None = None) -> None:
        """Rows must have the fields of `form`, be of `game`, and lie in chunks of at most `max_chunk_rows`."""
        self.store, self.form, self.game, self.max_chunk_rows = store, form, game, max_chunk_rows
        self._known: dict[Path, ShuffleSource] = {}

    def look(self) -> tuple[list[ShuffleSource], list[ShuffleProblem]]:
        """Usable chunks, oldest first, and the others."""
        found = [self._known.get(item.path) or self._read(item) for item in self.store.chunks()]
        good = [item for item in found if isinstance(item, ShuffleSource)]
        self._known = {item.chunk.path: item for item in good}  # the others are tried again the next time
        return good, [item for item in found if isinstance(item, ShuffleProblem)]

    def _read(self, item: Chunk) -> ShuffleSource | ShuffleProblem:
        try:
            meta = chunk.read_meta(item.path, self.form, self.game, self.max_chunk_rows)
        except chunk.ChunkError as error:
            return ShuffleProblem(item.path, str(error), isinstance(error, chunk.CorruptChunk))
        return ShuffleSource(item, meta.rows, meta.memory_bytes, meta.left_out_words(item.path))


@dataclass(frozen=True)
class ShufflePlan:
    """A shuffle that could be made now; `str(plan)` describes it."""

    store: Store
    form: RowFormat
    game: GameIdentity
    settings: ShuffleSettings
    window: WindowSettings
    sources: tuple[ShuffleSource, ...]  # oldest first
    problems: tuple[ShuffleProblem, ...]
    total_rows: int  # of the run, as far as they are in the store

    @property
    def window_rows(self) -> int:
        """Rows to draw from."""
        return sum(source.rows for source in self.sources)

    @property
    def rows(self) -> int:
        """Rows to draw."""
        return min(self.settings.keep_target_rows, self.window_rows)

    @property
    def missing_rows(self) -> int:
        """Rows that the run must still make before the window has its least size."""
        return max(self.window.min_rows - self.total_rows, 0)

    @property
    def partly_used(self) -> list[str]:
        """Remarks on chunks in the window of which some rows cannot be used."""
        return [source.remark for source in self.sources if source.remark]

    @cached_property
    def memory(self) -> "ShuffleMemory":
        """How the memory is divided. OptionError if it is too small."""
        return ShuffleMemory.shared(self.settings, self.form.row_bytes, self.sources, self.rows)

    @property
    def bytes_written(self) -> int:
        """The bytes of the result without compression; the scratch folder takes as much until the end."""
        return self.rows * self.form.row_bytes

    def __str__(self) -> str:
        sides = {side: [s.rows for s in self.sources if self.side(s) == side] for side in SIDES}
        first = self.total_rows - self.window_rows
        lines = [
            f"{self.total_rows:,} rows in the run, the window is the newest {self.window_rows:,} "
            f"(rows {first:,} to {self.total_rows:,})",
            *([f"waiting for {self.missing_rows:,} more rows, to have min_rows"] if self.missing_rows else []),
            f"reads    {len(self.sources):,} chunks, {in_bytes(sum(source.bytes for source in self.sources))}",
            *(f"         {sum(sides[side]):,} rows to {side}, of {len(sides[side]):,} chunks" for side in SIDES),
            f"writes   {self.rows:,} of these rows, {in_bytes(self.bytes_written)}, in files of "
            f"{self.settings.rows_per_file:,} rows",
            f"needs    {in_bytes(2 * self.bytes_written)} of disk while it works, half of it scratch",
        ]
        try:
            lines.append(f"         {self.memory}")
        except OptionError as error:
            lines.append(str(error))
        lines += [f"not used: {problem.reason}" for problem in self.problems]
        lines += [f"used in part: {remark}" for remark in self.partly_used]
        return "\n".join(lines)

    def side(self, source: ShuffleSource) -> str:
        """Where the rows of a chunk go."""
        return split_of(source.chunk.path.name, self.settings.validation_share)


def plan(survey: WindowSurvey, settings: ShuffleSettings, window: WindowSettings) -> ShufflePlan:
    """Choose the newest rows of the store, by the power law."""
    good, problems = survey.look()
    limit = ShuffleMemory.largest_chunk(settings)
    usable: dict[tuple[str, int], ShuffleSource] = {}
    for item in good:
        path, key = item.chunk.path, (item.chunk.path.name, item.rows)
        if item.bytes > limit:
            problems.append(
                ShuffleProblem(path, f"{path}: {item.rows} rows are too many for shuffle.memory_bytes", False)
            )
        elif key in usable:  # names are unique in a run, so no row comes twice
            problems.append(ShuffleProblem(path, f"{path}: seems to be a copy of {usable[key].chunk.path}", False))
        else:
            usable[key] = item
    total = sum(item.rows for item in usable.values())
    left = min(power_law(total, window), total)
    sources: list[ShuffleSource] = []
    for item in reversed(usable.values()):
        taken = min(item.rows, left)
        left -= taken
        if taken:
            sources.append(item._replace(rows=taken, skipped=item.rows - taken))
    return ShufflePlan(
        *(survey.store, survey.form, survey.game, settings, window), *(tuple(reversed(sources)), tuple(problems), total)
    )


@dataclass(frozen=True)
class ShuffleMemory:
    """How many threads read and write, and how many rows each reader collects before it writes them down."""

    readers: int
    writers: int
    run_rows: int
    total_bytes: int  # in use at the most

    @staticmethod
    def largest_chunk(settings: ShuffleSettings) -> int:
        """Bytes of the largest chunk that can be read."""
        return int(settings.memory_bytes * _USED) // (_CHUNK_COPIES + 2)

    @staticmethod
    def shared(
        settings: ShuffleSettings, row_bytes: int, sources: Sequence[ShuffleSource], rows: int
    ) -> "ShuffleMemory":
        """Divide the memory among as many workers as possible. OptionError if it is too small for one."""
        usable = int(settings.memory_bytes * _USED)
        workers = settings.workers or len(cores())
        row = row_bytes + _ORDER_BYTES
        chunk_bytes = _CHUNK_COPIES * max((source.bytes for source in sources), default=0)
        file_bytes = max(min(settings.rows_per_file, rows), 1) * (_FILE_COPIES * row_bytes + _ORDER_BYTES)
        if file_bytes > usable:
            raise OptionError(
                f"shuffle.memory_bytes: expected at least {math.ceil(file_bytes / _USED)} to write files of "
                f"{settings.rows_per_file} rows, got {settings.memory_bytes}; give it more, or make "
                "shuffle.rows_per_file less"
            )
        least = max([1, *(source.rows for source in sources)])  # a chunk is not divided
        readers = max(min(workers, usable // (chunk_bytes + least * row)), 1)
        fitting = (usable // readers - chunk_bytes) // row
        run_rows = max(min(fitting, math.ceil(rows / readers)), least)
        writers = max(min(workers, usable // file_bytes), 1)
        total = max(readers * (chunk_bytes + run_rows * row), writers * file_bytes)
        return ShuffleMemory(readers, writers, run_rows, total)

    def __str__(self) -> str:
        return (
            f"{in_bytes(self.total_bytes)} of memory for rows, with {self.readers} threads that read and "
            f"{self.writers} that write"
        )


class FilePart(NamedTuple):
    source: ShuffleSource
    rows: int


@dataclass(frozen=True)
class RowRun:
    """Rows that are in memory together."""

    number: int
    side: str
    parts: tuple[FilePart, ...]
    counts: np.ndarray  # Int32[F]: rows for each file of its side

    @property
    def rows(self) -> int:
        """Rows drawn."""
        return sum(part.rows for part in self.parts)


def draw(plan: ShufflePlan, random: np.random.Generator) -> tuple[RowRun, ...]:
    counts = shares([source.rows for source in plan.sources], plan.rows, random)
    runs: list[RowRun] = []
    for side in SIDES:
        both = zip(plan.sources, counts.tolist(), strict=True)
        parts = [FilePart(source, rows) for source, rows in both if rows and plan.side(source) == side]
        room = np.array(_file_sizes(sum(part.rows for part in parts), plan.settings.rows_per_file), np.int64)
        for group in _groups(parts, plan.memory.run_rows):
            files = shares(room, sum(part.rows for part in group), random)
            room -= files
            runs.append(RowRun(len(runs), side, tuple(group), files.astype(np.int32)))
    return tuple(runs)


def shares(sizes: Sequence[int] | np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Int64[...]: how many of `count` items, drawn evenly without replacement, come from each box of these sizes."""
    total = int(np.sum(sizes, dtype=np.int64))
    if total < _MOST:
        return random.multivariate_hypergeometric(sizes, count, method="marginals").astype(np.int64)
    if len(sizes) == 1:
        return np.array([count], np.int64)
    # At this size chance makes no difference: each half gives its proportion.
    half = len(sizes) // 2
    due = round(count * int(np.sum(sizes[:half], dtype=np.int64)) / total)
    return np.concatenate([shares(sizes[:half], due, random), shares(sizes[half:], count - due, random)])


def _file_sizes(rows: int, most: int) -> list[int]:
    return [most] * (rows // most) + ([rows % most] if rows % most else [])


def _groups(parts: list[FilePart], most: int) -> Iterator[list[FilePart]]:
    """Neighbours together, at most that many rows in a group."""
    group: list[FilePart] = []
    rows = 0
    for part in parts:
        if group and rows + part.rows > most:
            yield group
            group, rows = [], 0
        group.append(part)
        rows += part.rows
    if group:
        yield group
