"""The shuffle: rows of the window, drawn at random, in random order, in files of a fixed size. See docs/shuffle.md.

Threads suffice, because everything that takes time releases Python's lock.
"""

import contextlib
import dataclasses
import errno
import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from tengen import files, schema
from tengen.data.format import chunk
from tengen.data.format.rows import count_games
from tengen.data.shuffle import folders
from tengen.data.shuffle.folders import Shuffle, ShuffledFile
from tengen.data.shuffle.plan import SIDES, RowRun, ShufflePlan, ShuffleProblem, draw
from tengen.errors import TengenError
from tengen.words import in_bytes

_CACHED = 2**19  # bytes of a core's cache
_STEP = 4096  # rows that are copied at a time when a block has gaps
_NETWORK = "shuffled"  # the rows of a file are of many networks
_In = TypeVar("_In")
_Out = TypeVar("_Out")


class ShuffleProgress(NamedTuple):
    doing: str  # "reading" or "writing"
    rows: int
    of: int


def shuffle(
    plan: ShufflePlan,
    base: Path,
    seed: int,
    progress: Callable[[ShuffleProgress], object] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> Shuffle | None:
    """Make the planned shuffle in the run directory `base`; None if `stop` returns True before it is done.

    Corrupt chunks are set aside, missing ones skipped, and both are named in the index. The same plan and seed give the
    same files. TengenError if there is nothing to shuffle, or if the disk is full or cannot be written; nothing is left
    behind then.
    """
    if not plan.rows:
        reasons = "".join(f"\n{problem.reason}" for problem in plan.problems)
        raise TengenError(f"{plan.store.folder}: there are no rows to shuffle{reasons}")
    name = folders.new_name(base)
    final = base / folders.FOLDER / name
    scratch_place = Path(plan.settings.scratch or final.parent)
    try:
        with (
            folders.unfinished(final.parent, name) as part,
            folders.unfinished(scratch_place, f"{name}-scratch") as scratch,
        ):
            _check_space(plan, part, scratch)
            result = _Work(plan, seed, part, scratch, progress, stop).all()
            index = {"name": name, "seed": seed, **_index(plan, result)}
            (part / folders.READERS).mkdir()
            schema.write_json(part / folders.INDEX, index)
            for folder in (*(part / side for side in SIDES), part):
                files.sync_folder(folder)
            part.rename(final)
            files.sync_folder(final.parent)
    except _Stopped:
        return None
    except OSError as error:
        raise files.cannot_write(error.filename or final, error) from error
    return Shuffle.load(final)


def _index(plan: ShufflePlan, result: "_Result") -> dict[str, object]:
    bad = {problem.path for problem in result.problems}
    return {
        "schema": folders.SCHEMA,
        "rows": {side: sum(file.rows for file in result.files[side]) for side in SIDES},
        "window": [plan.total_rows - plan.window_rows, plan.total_rows],
        "total_rows": plan.total_rows,
        "chunks": [plan.sources[0].chunk.path.name, plan.sources[-1].chunk.path.name],
        "format": plan.form.to_dict(),
        **plan.game.to_dict(),
        "settings": dataclasses.asdict(plan.settings),
        "window_settings": dataclasses.asdict(plan.window),
        "not_used": [_set_aside(plan, problem) for problem in (*plan.problems, *result.problems)],
        "partly_used": [one.remark for one in plan.sources if one.remark and one.chunk.path not in bad],
        **{
            side: [{**file._asdict(), "path": f"{side}/{file.path.name}"} for file in result.files[side]]
            for side in SIDES
        },
    }


def _set_aside(plan: ShufflePlan, problem: ShuffleProblem) -> str:
    """Rename a corrupt chunk, leave others alone; returns the reason."""
    try:
        if problem.corrupt:
            plan.store.set_aside(problem.path, problem.reason)
    except TengenError as error:
        return f"{problem.reason} ({error})"
    return problem.reason


def _check_space(plan: ShufflePlan, part: Path, scratch: Path) -> None:
    """TengenError if the disk would be full before the end."""
    size = plan.bytes_written
    needs = {part: 0 if plan.settings.compress else size, scratch: size}
    if part.stat().st_dev == scratch.stat().st_dev:
        needs = {scratch: sum(needs.values())}
    for folder, need in needs.items():
        free = shutil.disk_usage(folder).free
        if free < need:
            raise TengenError(
                f"{folder}: cannot be written: a shuffle needs {in_bytes(need)} here and {in_bytes(free)} are free; "
                "make room, or make shuffle.keep_target_rows less"
            ) from OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class _Stopped(Exception):
    """The caller wants to stop."""


class _Result(NamedTuple):
    files: Mapping[str, list[ShuffledFile]]  # side -> in order
    problems: list[ShuffleProblem]  # found while reading


class _Written(NamedTuple):
    path: Path
    bounds: np.ndarray  # Int64[F + 1]: the rows for file f are those from bounds[f] to bounds[f + 1]
    problems: list[ShuffleProblem]


class _Work:
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

    def all(self) -> _Result:
        """Both passes. Raises _Stopped, or TengenError if a file cannot be written."""
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
        found = {side: [made[key] for key in sorted(made) if key[0] == side] for side in SIDES}
        return _Result(found, [problem for run in runs for problem in written[run.number].problems])

    def _random(self, *which: int) -> np.random.Generator:
        """A random generator for each piece of work, so that the order of the work does not matter."""
        return np.random.default_rng([self._seed, *which])

    @contextlib.contextmanager
    def _each(
        self, work: Callable[[_In], _Out], items: Iterable[_In], threads: int
    ) -> Iterator[Iterator[tuple[_In, _Out]]]:
        """Every item with its result, in the order of completion, by that many threads, which end with it."""

        def done() -> Iterator[tuple[_In, _Out]]:
            while waiting:
                if self._stop():
                    raise _Stopped
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
        plan, random = self._plan, self._random(1, run.number)
        places = random.permutation(run.rows)
        block = np.empty((run.rows, plan.form.row_bytes), np.uint8)
        there = np.zeros(run.rows, bool)
        problems: list[ShuffleProblem] = []
        end = 0
        for source, count in run.parts:
            if self._ended.is_set():
                raise _Stopped
            begin, end = end, end + count
            chosen = source.skipped + np.sort(random.choice(source.rows, count, replace=False, shuffle=False))
            try:
                rows, meta = chunk.read_chunk(source.chunk.path, plan.form, plan.game)
                if meta.rows != source.skipped + source.rows:
                    raise chunk.ForeignChunk(f"{source.chunk.path}: has changed since the shuffle was planned")
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
        few = np.empty((self._step, block.shape[1]), np.uint8)  # small enough for the cache
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
        if self._ended.is_set():
            raise _Stopped
        form = self._plan.form
        block = _load_block([(r.path, int(r.bounds[number]), int(r.bounds[number + 1])) for r in runs], form.row_bytes)
        count = len(block)
        if not count:
            return None
        order = self._random(2, SIDES.index(side), number).permutation(count)
        fields = self._fields(block, order)
        del block
        meta = chunk.Meta(self._plan.game, form, _NETWORK, count, count_games(fields["game"]))
        path = self._part / side / f"{number:05d}.npz"
        with files.writing(path), path.open("x+b") as file:
            chunk.pack(file, meta, fields.items(), compress=self._plan.settings.compress)
            file.flush()
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
            return ShuffledFile(path, count, file.tell(), digest)


def _keep_freed_memory() -> None:
    """Keep the memory of one chunk for the next, instead of returning it to the system in between.

    The C library of Linux keeps freed memory up to a limit, which it learns from the largest block freed so far.
    Elsewhere this does nothing.
    """
    np.empty(2**24, np.uint8)


def _save_block(path: Path, block: np.ndarray, there: np.ndarray) -> None:
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
            raise TengenError(f"{path}: this file was changed while it was needed")
    return block
