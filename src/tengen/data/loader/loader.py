"""From files to batches, on threads. The stages of one split:

    files -> read -> pool -> unpack -> mix -> batch -> batches

Without a pool, chunks wait in a queue instead; without a reservoir there is no `mix`, and rows stay in order. See
docs/loader.md.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tengen.config.settings.data import LoaderSettings
from tengen.data.format.chunk import ChunkError, read_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat, Rows, check
from tengen.data.loader.mixing import Arrived, Batch, Batches, NewestFiles, Picked, Pool, Reservoir, count_rows
from tengen.data.loader.sources import (
    SPLITS,
    FileSource,
    FoundFile,
    LoaderLedger,
    RejectedFile,
    RejectionKind,
    Split,
    SplitCounts,
    share_of,
    split_of,
)
from tengen.data.loader.stages import (
    Channel,
    ChannelClosed,
    ChannelEnded,
    Meter,
    Stage,
    StageFailed,
    StageStats,
    Ticks,
)
from tengen.errors import OptionError, TengenError
from tengen.words import NAMED, first_few

Read = Callable[[Path], Rows]
"""Reads the wanted fields of the rows in a file. ChunkError if it cannot be used."""


class LoaderClosed(TengenError):
    """The loader is closed, so there are no more batches."""


class LoaderTimeout(TengenError, TimeoutError):
    """There was no batch in time; the message says what was waited for."""


@dataclass(frozen=True)
class LoaderStats:
    stages: tuple[StageStats, ...]  # in the order in which files pass them; of the splits in use
    counts: Mapping[Split, SplitCounts]
    passed_over: Mapping[Split, int]  # files never read, because there were enough newer ones for the pool
    rejected: Mapping[RejectionKind, int]  # files that cannot be used
    last_rejected: tuple[RejectedFile, ...]  # the last hundred of them, with the reasons

    def stage(self, name: str, split: str = "") -> StageStats:
        """The stage of that name: `watch`, or one of a split."""
        return next(stage for stage in self.stages if (stage.name, stage.split) == (name, split))

    def to_dict(self) -> dict[str, Any]:
        rejected = [{**item._asdict(), "path": str(item.path)} for item in self.last_rejected]
        return {**asdict(self), "last_rejected": rejected}


class Loader(contextlib.AbstractContextManager["Loader"]):
    """Batches from the files of a source. Any thread may call any method."""

    def __init__(
        self,
        source: FileSource,
        form: RowFormat,
        game: GameIdentity,
        settings: LoaderSettings,
        read: Read | None = None,
        max_chunk_rows: int | None = None,
    ) -> None:
        """Starts nothing yet. `read` replaces `read_chunk` for files of another kind, and must give rows of `form`.

        Chunks with more rows than `max_chunk_rows` are rejected. OptionError if the settings do not suit the source.
        """
        if source.endless and not settings.pool_chunks:
            raise OptionError("pool_chunks: expected at least 1 for a source without an end, got 0")
        self.names = tuple(form.fields)  # of the arrays in a batch
        self._settings = settings
        self._ledger = LoaderLedger(source)
        self._lock = threading.Lock()
        self._closed = False
        self._remarks: list[str] = []  # the first on files that are used in part, since they were last asked for
        self._partly_used = 0  # all such files since then

        def read_checked(path: Path) -> Rows:
            if read is None:
                rows, meta = read_chunk(path, form, game, max_chunk_rows)
                if meta.left_out:
                    with self._lock:
                        self._partly_used += 1
                        self._remarks += [meta.left_out_words(path)] if self._partly_used <= NAMED else []
                return rows
            rows = read(path)
            check(form, rows)
            return rows

        self._pipelines: dict[Split, _Pipeline] = {
            split: _Pipeline(split, form, settings, read_checked, self._ledger, endless=source.endless)
            for split in SPLITS
            if share_of(split, settings)
        }
        self._ticks = Ticks(settings.poll_seconds, source.words)
        sorter = _Sorter(self._pipelines, settings)
        self._watch = Stage("", "watch", lambda ticks: _watch(source, ticks), self._ticks, sorter, items=len)
        self._watching = False
        self._consumers = {split: Meter() for split in self._pipelines}

    def start(self, split: Split = "train") -> None:
        """Begin to look for files and to read those of a split."""
        if split not in self._pipelines:
            raise OptionError(f"{split}: this loader's settings give it no files")
        with self._lock:
            if self._closed:
                raise LoaderClosed("the loader is closed")
            if not self._watching:
                self._watching = True
                self._watch.start()
            self._pipelines[split].start()

    def get_next_batch(self, split: Split = "train", timeout: float | None = None) -> Batch | None:
        """The next batch, arrays in the order of `names`; None at the end of a source that ends.

        The loader never writes the arrays again. Raises LoaderTimeout after `timeout` seconds, LoaderClosed if the
        loader is or gets closed, and StageFailed, with its cause, if a stage failed.
        """
        self.start(split)
        meter = self._consumers[split]
        try:
            with meter.waiting("input"):
                batch = self._pipelines[split].batches.get(timeout)
        except ChannelEnded:
            return None
        except ChannelClosed:
            raise LoaderClosed("the loader was closed while a batch was waited for") from None
        except StageFailed as error:
            raise StageFailed(str(error)) from error.__cause__  # a new one: each consumer adds its own traceback
        except TimeoutError:
            raise LoaderTimeout(f"{split}: no batch within {timeout:g} s: {self.waiting(split)}") from None
        meter.turn("working")
        meter.count(len(batch[0]))
        self._ledger.hand_out(split)
        return batch

    def waiting(self, split: Split = "train") -> str:
        """What each stage of a split waits for, how far that is, and since when, for messages."""
        words = []
        for stage in (self._watch.stats(), *self._pipelines[split].stats()):
            doing = {"working": "at work", "idle": "not started", "ended": "done"}.get(stage.doing)
            waits = f"waits for {stage.waits_for} ({stage.since:,.0f} s)"
            words.append(f"{stage.name} {waits if stage.waits_for else f'is {doing}'}")
        return "; ".join(words)

    def get_stats(self) -> LoaderStats:
        """Figures of all stages that have begun, and of the caller who takes batches (`consumer`)."""
        stages = [self._watch.stats()]
        for split, pipeline in self._pipelines.items():
            if pipeline.started:
                ready = pipeline.batches
                consumer = self._consumers[split].stats(split, "consumer", "batches", ready.waiting, ready.capacity)
                stages += [*pipeline.stats(), consumer]
        passed_over: dict[Split, int] = {split: pipeline.passed_over for split, pipeline in self._pipelines.items()}
        return LoaderStats(tuple(stages), self.counts(), passed_over, *self._ledger.rejected())

    def remarks(self) -> list[str]:
        """Remarks since the last call about files of which only some rows are used: the first few, and a count."""
        with self._lock:
            found = first_few(self._remarks, "used in part", self._partly_used)
            self._remarks, self._partly_used = [], 0
            return found

    def counts(self) -> dict[Split, SplitCounts]:
        """Chunks and rows of each split since the beginning, over restarts if the state was restored."""
        return self._ledger.counts()

    def state(self) -> dict[str, Any]:
        """The counts for `restore`, in JSON values."""
        return self._ledger.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue the counts of an earlier loader: its files are read again, but not counted again."""
        with self._lock:
            if self._watching:
                raise ValueError("restore a loader before it is started")
            self._ledger.restore(state)

    def close(self) -> None:
        """End all threads, and wake callers who wait for a batch."""
        with self._lock:
            self._closed = True
        self._ticks.close()
        for pipeline in self._pipelines.values():
            pipeline.close()
        self._watch.join()
        for pipeline in self._pipelines.values():
            pipeline.join()

    def __exit__(self, *exception: object) -> None:
        self.close()


class _Sorter(Channel[list[FoundFile]]):
    def __init__(self, pipelines: "Mapping[Split, _Pipeline]", settings: LoaderSettings) -> None:
        super().__init__(None, "files")
        self._pipelines, self._settings = pipelines, settings

    def put(self, item: list[FoundFile]) -> None:
        for split, pipeline in self._pipelines.items():
            shares = self._settings.validation, self._settings.test
            pipeline.files.put_all(found for found in item if split_of(found.path.name, *shares) == split)

    def end(self) -> None:
        for pipeline in self._pipelines.values():
            pipeline.files.end()

    def fail(self, error: StageFailed) -> None:
        for pipeline in self._pipelines.values():
            pipeline.files.fail(error)


class _Pipeline:
    """The stages of one split: files are put into `files`, and batches taken out of `batches`."""

    def __init__(
        self,
        split: Split,
        form: RowFormat,
        settings: LoaderSettings,
        read: Read,
        ledger: LoaderLedger,
        *,
        endless: bool,
    ) -> None:
        self._split, self._settings = split, settings
        for_pool, for_reservoir = np.random.default_rng([settings.seed, SPLITS.index(split)]).spawn(2)
        self._channels: list[Channel[Any]] = []
        self._stages: list[Stage] = []
        self.started = False
        self.files: Channel[FoundFile] = NewestFiles(settings.pool_chunks) if endless else Channel(None, "files")
        self._chunks: Channel[Any] = Channel(settings.queue, "chunks")
        if settings.pool_chunks:
            chunks, start, share = settings.pool_chunks, settings.start_chunks, settings.chunk_share
            self._chunks = Pool(chunks, start, share, endless=endless, numbers=for_pool)
        self._channels += [self.files, self._chunks]
        reader = _Reader(read, settings.readers, split, ledger, self._useless)
        self._stage("read", reader.work, self.files, self._chunks, rows=lambda chunk: count_rows(chunk.rows))
        rows = self._channel("rows")
        self._stage("unpack", _unpack, self._chunks, rows, rows=count_rows)
        made = Batches(form, settings.batch, settings.rest)
        self.batches = self._channel("batches")
        if settings.reservoir_rows:
            chosen = self._channel("rows to be chosen")
            reservoir = Reservoir(form, settings.reservoir_rows, made, settings.queue, for_reservoir)
            self._stage("mix", reservoir.mix, rows, chosen, rows=len, words=reservoir.words)
            self._stage("batch", reservoir.gather, chosen, self.batches, rows=lambda batch: len(batch[0]))
        else:
            self._stage("batch", made.in_order, rows, self.batches, rows=lambda batch: len(batch[0]))

    def start(self) -> None:
        """Begin, unless that has happened."""
        if not self.started:
            self.started = True
            for stage in self._stages:
                stage.start()

    def close(self) -> None:
        """Wake all stages and callers who wait for a batch."""
        for channel in self._channels:
            channel.close()

    def join(self) -> None:
        """Return when all stages have ended."""
        for stage in self._stages:
            stage.join()

    def stats(self) -> list[StageStats]:
        return [stage.stats() for stage in self._stages]

    @property
    def passed_over(self) -> int:
        """Files that were never read, because there were enough newer ones."""
        return self.files.passed_over if isinstance(self.files, NewestFiles) else 0

    def _useless(self) -> None:
        if isinstance(self.files, NewestFiles) and self._chunks.waiting < self._settings.pool_chunks:
            self.files.bring_back()

    def _channel(self, what: str) -> Channel[Any]:
        channel: Channel[Any] = Channel(self._settings.queue, what)
        self._channels.append(channel)
        return channel

    def _stage(self, name: str, work: Any, inbox: Channel[Any], outbox: Channel[Any], **more: Any) -> None:
        self._stages.append(Stage(self._split, name, work, inbox, outbox, **more))


def _watch(source: FileSource, ticks: Iterable[None]) -> Iterator[list[FoundFile]]:
    """Ticks to lists of files: all of a source that ends at the first tick, new ones at ticks of an endless source."""
    for _ in ticks:
        if found := source.look():
            yield found
        if not source.endless:
            return


@dataclass(frozen=True)
class _Reader:
    """Files to chunks that have rows, in the same order; `readers` of them are read at a time."""

    read: Read
    readers: int
    split: Split
    ledger: LoaderLedger
    useless: Callable[[], None]  # called for each file that gives no rows

    def work(self, incoming: Stage) -> Iterator[Arrived]:
        pending: deque[tuple[FoundFile, Future[Rows | None]]] = deque()
        ended = False
        with ThreadPoolExecutor(self.readers, f"tengen-{self.split}-reader") as threads:
            while pending or not ended:
                found = None
                if not ended and len(pending) < self.readers:
                    try:
                        found = incoming.poll() if pending else incoming.get()
                    except ChannelEnded:
                        ended = True
                if found is not None:
                    pending.append((found, threads.submit(self._attempt, found)))
                elif pending:
                    done, future = pending.popleft()
                    rows = future.result()
                    if rows is not None:
                        self.ledger.accept(self.split, done, count_rows(rows))
                    if rows is not None and count_rows(rows):
                        yield Arrived(rows, done.old)
                    else:
                        self.useless()

    def _attempt(self, found: FoundFile) -> Rows | None:
        try:
            return self.read(found.path)
        except ChunkError as error:
            self.ledger.reject(found, error)
            return None


def _unpack(incoming: Iterable[Arrived | Picked]) -> Iterator[Rows]:
    """Chunks in order, or `Picked` of a pool, to rows. Whole chunks are not copied."""
    for item in incoming:
        which = item.which if isinstance(item, Picked) else None
        rows = item.rows
        yield rows if which is None else {name: np.take(values, which, axis=0) for name, values in rows.items()}
