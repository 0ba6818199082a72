"""The two passes of a shuffle over its rows, with threads, through a scratch folder.

First each *run* of chunks (shuffle_draw.py) is read into one block of memory, every row at a random place, and written
down as it stands. Then each file collects its part of every run and puts it in random order. Both are bounded by
`memory_bytes`, and read and write in long stretches. Threads do, because all that takes time lets go of Python's lock.
"""

import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from tengen import files
from tengen.data.format import chunk
from tengen.data.shuffle.draw import RowRun, draw
from tengen.data.shuffle.folders import ShuffledFile
from tengen.data.shuffle.plan import SIDES, ShufflePlan, ShuffleProblem
from tengen.errors import TengenError

_CACHED = 2**19  # bytes that a core has quickly at hand
_STEP = 4096  # rows that are copied at a time when a block has gaps
_NETWORK = "shuffled"  # the rows of a file are of many networks
_In = TypeVar("_In")
_Out = TypeVar("_Out")


class ShuffleStopped(Exception):
    """The caller wanted no more."""


class ShuffleProgress(NamedTuple):
    """How far a shuffle has come."""

    doing: str  # "reading" or "writing"
    rows: int
    of: int


class ShuffleResult(NamedTuple):
    """What was made."""

    files: Mapping[str, list[ShuffledFile]]  # side -> in order
    problems: list[ShuffleProblem]  # found while reading


class _Written(NamedTuple):
    """A run in the scratch folder."""

    path: Path
    bounds: np.ndarray  # Int64[F + 1]: the rows for file f are those from bounds[f] to bounds[f + 1]
    problems: list[ShuffleProblem]


class ShuffleWork:
    """One shuffle while it is made: from the store to the folder `part`."""

    def __init__(
        self,
        plan: ShufflePlan,
        seed: int,
        part: Path,
        scratch: Path,
        progress: Callable[[ShuffleProgress], object],
        stop: Callable[[], bool],
    ) -> None:
        self._plan, self._seed, self._part, self._scratch = plan, seed, part, scratch
        self._progress, self._stop = progress, stop
        self._ended = threading.Event()  # tells the threads
        self._step = max(_CACHED // plan.form.row_bytes, 1)
        ends = np.cumsum([int(np.prod(shape)) * dtype.itemsize for shape, dtype in plan.form.fields.values()])
        names = zip(plan.form.fields, [0, *ends[:-1]], ends, strict=True)
        self._columns = {name: slice(int(begin), int(end)) for name, begin, end in names}

    def all(self) -> ShuffleResult:
        """Both passes. Raises Stopped, or TengenError if a file cannot be written."""
        _keep_freed_memory()
        runs = draw(self._plan, self._random(0))
        written: dict[int, _Written] = {}
        rows, total = 0, self._plan.rows
        with self._each(self._read_run, runs, self._plan.memory.readers) as done:
            for run, found in done:
                written[run.number] = found
                rows += run.rows
                self._progress(ShuffleProgress("reading", rows, total))
        by_side = {side: [written[run.number] for run in runs if run.side == side] for side in SIDES}
        jobs = [(side, n) for side in SIDES if by_side[side] for n in range(len(by_side[side][0].bounds) - 1)]
        made: dict[tuple[str, int], ShuffledFile] = {}
        rows, total = 0, sum(int(run.bounds[-1]) for run in written.values())
        for side in SIDES:
            (self._part / side).mkdir()
        with self._each(lambda j: self._write_file(*j, by_side[j[0]]), jobs, self._plan.memory.writers) as done:
            for job, file in done:
                if file is not None:
                    made[job] = file
                    rows += file.rows
                    self._progress(ShuffleProgress("writing", rows, total))
        files = {side: [made[key] for key in sorted(made) if key[0] == side] for side in SIDES}
        return ShuffleResult(files, [problem for run in runs for problem in written[run.number].problems])

    def _random(self, *which: int) -> np.random.Generator:
        """Random numbers of its own for each piece of work, so that the order of the work does not matter."""
        return np.random.default_rng([self._seed, *which])

    @contextlib.contextmanager
    def _each(
        self, work: Callable[[_In], _Out], items: Iterable[_In], threads: int
    ) -> Iterator[Iterator[tuple[_In, _Out]]]:
        """Every item with what `work` gives for it, as they come, from that many threads; none of them outlives it."""

        def done() -> Iterator[tuple[_In, _Out]]:
            while waiting:
                if self._stop():
                    raise ShuffleStopped
                for future in wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), future.result()

        with ThreadPoolExecutor(threads, "tengen-shuffle") as pool:
            waiting = {pool.submit(work, item): item for item in items}
            try:
                yield done()
            except BaseException:
                self._ended.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _read_run(self, run: RowRun) -> _Written:
        """Read the chunks of a run, and write its rows, in random order, into the scratch folder."""
        plan, random = self._plan, self._random(1, run.number)
        places = random.permutation(run.rows)
        block = np.empty((run.rows, plan.form.row_bytes), np.uint8)
        there = np.zeros(run.rows, bool)
        problems: list[ShuffleProblem] = []
        end = 0
        for source, count in run.parts:
            if self._ended.is_set():
                raise ShuffleStopped
            begin, end = end, end + count
            chosen = source.skipped + np.sort(random.choice(source.rows, count, replace=False, shuffle=False))
            try:
                rows, meta = chunk.read_chunk(source.chunk.path, plan.form, plan.game)
                if meta.rows != source.skipped + source.rows:
                    raise chunk.ForeignChunk(f"{source.chunk.path}: has changed since it was looked at")
            except chunk.ChunkError as error:
                problems.append(ShuffleProblem(source.chunk.path, str(error), isinstance(error, chunk.CorruptChunk)))
                continue
            self._put(block, places[begin:end], rows, None if count == meta.rows else chosen)
            there[places[begin:end]] = True
            del rows  # before the next chunk comes
        path = self._scratch / f"{run.number:06d}"
        _save_block(path, block, there)
        before = np.concatenate([[0], np.cumsum(there)])  # rows that are there, before each place
        return _Written(path, before[np.concatenate([[0], np.cumsum(run.counts)])], problems)

    def _put(
        self, block: np.ndarray, places: np.ndarray, rows: Mapping[str, np.ndarray], chosen: np.ndarray | None
    ) -> None:
        """Put rows, all or those that were chosen, at these places of the block."""
        few = np.empty((self._step, block.shape[1]), np.uint8)  # put together where the processor is quick
        for begin in range(0, len(places), self._step):
            end = min(begin + self._step, len(places))
            which = slice(begin, end) if chosen is None else chosen[begin:end]
            for name, column in self._columns.items():
                values = rows[name][which]
                if values.size:
                    few[: end - begin, column] = values.reshape(end - begin, -1).view(np.uint8)
            block[places[begin:end]] = few[: end - begin]

    def _fields(self, block: np.ndarray, order: np.ndarray) -> dict[str, np.ndarray]:
        """The rows of a block in that order, field by field."""
        columns = {name: np.empty((len(order), c.stop - c.start), np.uint8) for name, c in self._columns.items()}
        for begin in range(0, len(order), self._step):
            few = block[order[begin : begin + self._step]]
            for name, column in self._columns.items():
                columns[name][begin : begin + self._step] = few[:, column]
        fields = self._plan.form.fields.items()
        return {name: columns[name].view(dtype).reshape(len(order), *shape) for name, (shape, dtype) in fields}

    def _write_file(self, side: str, number: int, runs: list[_Written]) -> ShuffledFile | None:
        """Collect the rows of a file from all runs, and write them in random order; None if there are none."""
        if self._ended.is_set():
            raise ShuffleStopped
        form = self._plan.form
        block = _load_block([(r.path, int(r.bounds[number]), int(r.bounds[number + 1])) for r in runs], form.row_bytes)
        count = len(block)
        if not count:
            return None
        order = self._random(2, SIDES.index(side), number).permutation(count)
        fields = self._fields(block, order)
        del block
        meta = chunk.Meta(self._plan.game, form, _NETWORK, count, chunk.count_games(fields["game"]))
        path = self._part / side / f"{number:05d}.npz"
        with files.writing(path), path.open("x+b") as file:
            chunk.pack(file, meta, fields.items(), compress=self._plan.settings.compress)
            file.flush()
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
            return ShuffledFile(path, count, file.tell(), digest)


def _keep_freed_memory() -> None:
    """Have the memory of one chunk at hand for the next, instead of given back to the system and asked for again.

    The C library of Linux keeps what is freed up to a limit, which it learns from the largest block freed so far.
    Elsewhere this does nothing.
    """
    np.empty(2**24, np.uint8)


def _save_block(path: Path, block: np.ndarray, there: np.ndarray) -> None:
    """Write the rows that are there, in order."""
    with files.writing(path), path.open("xb") as file:
        if there.all():
            file.write(block.data)
        else:
            for begin in range(0, len(block), _STEP):
                file.write(block[begin : begin + _STEP][there[begin : begin + _STEP]].data)


def _load_block(spans: list[tuple[Path, int, int]], row_bytes: int) -> np.ndarray:
    """UInt8[N, row_bytes]: the rows from `begin` to `end` of each file."""
    block = np.empty((sum(end - begin for _, begin, end in spans), row_bytes), np.uint8)
    at = 0
    for path, begin, end in spans:
        piece = block[at : at + end - begin]
        at += end - begin
        if not piece.size:
            continue
        with files.reading(path), files.open_buffered(path) as file:
            file.seek(begin * row_bytes)
            complete = file.readinto(piece.data) == piece.nbytes
        if not complete:
            raise TengenError(f"{path}: somebody has changed this file while it was needed")
    return block
