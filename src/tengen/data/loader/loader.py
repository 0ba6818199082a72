"""From files to batches, on threads of its own.

    source = data.FileList(sorted(shuffle.glob("*.npz")))       # these files, once each, and then the end
    source = data.Folder(run / "selfplay")                      # whatever comes, for ever
    with data.Loader(source, form, game, settings) as loader:
        while (batch := loader.get_next_batch("train")) is not None:
            rows = dict(zip(loader.names, batch))

See docs/loader.md.
"""

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tengen.config.settings.data import LoaderSettings
from tengen.data.format.chunk import read_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat, Rows, check
from tengen.data.loader.batches import Batch
from tengen.data.loader.channels import ChannelClosed, ChannelEnded, StageFailed, Ticks
from tengen.data.loader.ledger import Kind, LoaderLedger, RejectedFile, SplitCounts
from tengen.data.loader.meters import Doing, Meter, StageStats
from tengen.data.loader.pipeline import Pipeline
from tengen.data.loader.reading import Read, length, watching
from tengen.data.loader.sources import FileSource, FoundFile
from tengen.data.loader.splits import SPLITS, Split, share_of, split_of
from tengen.data.loader.stages import Stage
from tengen.errors import OptionError, TengenError


class LoaderClosed(TengenError):
    """A batch was asked for, but the loader is closed."""


class LoaderTimeout(TengenError, TimeoutError):
    """There was no batch in time, and here is what was waited for."""


@dataclass(frozen=True)
class LoaderStats:
    """How a loader stands."""

    stages: tuple[StageStats, ...]  # in the order in which files pass them; of the splits that were asked for
    counts: Mapping[Split, SplitCounts]
    passed_over: Mapping[Split, int]  # files never read, because there were enough newer ones for the pool
    rejected: Mapping[Kind, int]  # files that were set aside
    last_rejected: tuple[RejectedFile, ...]  # the last hundred of them, with the reasons

    def stage(self, name: str, split: str = "") -> StageStats:
        """One of them: `watch`, or one of a split."""
        return next(stage for stage in self.stages if (stage.name, stage.split) == (name, split))

    def to_dict(self) -> dict[str, Any]:
        """In values for JSON."""
        rejected = [{**item._asdict(), "path": str(item.path)} for item in self.last_rejected]
        return {
            "stages": [asdict(stage) for stage in self.stages],
            "counts": {split: asdict(counts) for split, counts in self.counts.items()},
            "passed_over": dict(self.passed_over),
            "rejected": dict(self.rejected),
            "last_rejected": rejected,
        }


class Loader:
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
        """Starts nothing yet. `read` reads files of another kind than chunks of `game`; it must give rows of `form`.

        Chunks with more rows than `max_chunk_rows` are rejected. OptionError if the settings are not for such a source.
        """
        if source.endless and not settings.pool_chunks:
            raise OptionError("pool_chunks: expected at least 1 for a source without an end, got 0")
        self.names = tuple(form.fields)  # of the arrays in a batch
        self._settings = settings
        self._ledger = LoaderLedger(source)
        self._lock = threading.Lock()
        self._closed = False
        read = _checked(read, form) if read else lambda path: read_chunk(path, form, game, max_chunk_rows)[0]
        self._pipelines: dict[Split, Pipeline] = {
            split: Pipeline(split, form, settings, read, self._ledger, endless=source.endless)
            for split in SPLITS
            if share_of(split, settings)
        }
        self._ticks = Ticks(settings.poll_seconds, source.words)
        self._watch = Stage("", "watch", watching(source), self._ticks, _Sorter(self._pipelines, settings), items=len)
        self._watching = False
        self._consumers = {split: Meter() for split in self._pipelines}

    def start(self, split: Split = "train") -> None:
        """Begin to look for files and to read those of a split, before anybody asks for a batch."""
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
        """The next batch, arrays in the order of `names`; None when a source that ends has come to its end.

        The arrays are nobody else's: the loader never writes them again. Raises LoaderTimeout after `timeout` seconds,
        LoaderClosed if the loader is or gets closed, and StageFailed, with its cause, if a stage could not go on.
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
        meter.count(length(batch))
        self._ledger.hand_out(split)
        return batch

    def waiting(self, split: Split = "train") -> str:
        """What each stage of a split waits for, how far that is, and since when, in words."""
        return "; ".join(map(_words, [self._watch.stats(), *self._pipelines[split].stats()]))

    def get_stats(self) -> LoaderStats:
        """Figures of all stages that have begun, and of whoever asks for batches (`consumer`)."""
        stages = [self._watch.stats()]
        for split, pipeline in self._pipelines.items():
            if pipeline.started:
                ready = pipeline.batches
                consumer = self._consumers[split].stats(split, "consumer", "batches", ready.waiting, ready.capacity)
                stages += [*pipeline.stats(), consumer]
        ledger = self._ledger
        passed_over: dict[Split, int] = {split: pipeline.passed_over for split, pipeline in self._pipelines.items()}
        return LoaderStats(tuple(stages), ledger.counts(), passed_over, ledger.kinds(), ledger.rejected())

    def counts(self) -> dict[Split, SplitCounts]:
        """Chunks and rows of each split since the beginning, over restarts if the state was restored."""
        return self._ledger.counts()

    def state(self) -> dict[str, Any]:
        """What `restore` needs, in values for JSON."""
        return self._ledger.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on counting from an earlier loader's state: files that it counted are read but not counted again."""
        with self._lock:
            if self._watching:
                raise ValueError("restore a loader before it is started")
            self._ledger.restore(state)

    def close(self) -> None:
        """End all threads, and wake whoever waits for a batch."""
        with self._lock:
            self._closed = True
        self._ticks.close()
        for pipeline in self._pipelines.values():
            pipeline.close()
        self._watch.join()
        for pipeline in self._pipelines.values():
            pipeline.join()

    def __enter__(self) -> "Loader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _Sorter:
    """Gives files to the splits that their names belong to."""

    def __init__(self, pipelines: Mapping[Split, Pipeline], settings: LoaderSettings) -> None:
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


def _checked(read: Read, form: RowFormat) -> Read:
    def checked(path: Path) -> Rows:
        rows = read(path)
        check(form, rows)
        return rows

    return checked


def _words(stage: StageStats) -> str:
    if stage.waits_for:
        return f"{stage.name} waits for {stage.waits_for} ({stage.since:,.0f} s)"
    return f"{stage.name} is {_DOING[stage.doing]}"


_DOING: dict[Doing, str] = {"working": "at work", "idle": "not started", "ended": "done"}
