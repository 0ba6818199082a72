"""The stages of one split, from files to batches:

    files -> read -> pool -> unpack -> mix -> batch -> batches

Without a pool chunks wait in a queue instead; without a reservoir there is no `mix`, and rows stay in order.
"""

from typing import Any

import numpy as np

from tengen.config.settings.data import LoaderSettings
from tengen.data.format.rows import RowFormat
from tengen.data.loader.batches import Batches
from tengen.data.loader.channels import Channel
from tengen.data.loader.ledger import LoaderLedger
from tengen.data.loader.meters import StageStats
from tengen.data.loader.newest import Newest
from tengen.data.loader.pool import Pool, count_rows
from tengen.data.loader.reading import Read, length, reading, unpacking
from tengen.data.loader.reservoir import Reservoir
from tengen.data.loader.sources import FoundFile
from tengen.data.loader.splits import SPLITS, Split
from tengen.data.loader.stages import Stage


class Pipeline:
    """Files are put into `files`, and batches taken out of `batches`. Nothing is read before `start`."""

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
        self._numbers = np.random.default_rng([settings.seed, SPLITS.index(split)]).spawn(2)  # pool, reservoir
        self._channels: list[Channel[Any]] = []
        self._stages: list[Stage] = []
        self.started = False

        self.files: Channel[FoundFile] = Newest(settings.pool_chunks) if endless else Channel(None, "files")
        self._channels.append(self.files)
        work = reading(read, settings.readers, split, ledger, self._useless)
        self._chunks = self._pool(endless) if settings.pool_chunks else self._channel("chunks")
        self._stage("read", work, self.files, self._chunks, rows=lambda chunk: count_rows(chunk.rows))
        unpacked = self._channel("rows")
        self._stage("unpack", unpacking, self._chunks, unpacked, rows=count_rows)
        self.batches = self._to_batches(form, unpacked)

    def start(self) -> None:
        """Begin, if that has not happened."""
        if not self.started:
            self.started = True
            for stage in self._stages:
                stage.start()

    def close(self) -> None:
        """Wake all stages and whoever waits for a batch."""
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
        return self.files.passed_over if isinstance(self.files, Newest) else 0

    def _useless(self) -> None:
        """A file gave nothing to the pool."""
        if isinstance(self.files, Newest) and self._chunks.waiting < self._settings.pool_chunks:
            self.files.bring_back()

    def _to_batches(self, form: RowFormat, rows: Channel[Any]) -> Channel[Any]:
        made = Batches(form, self._settings.batch, self._settings.rest)
        batches = self._channel("batches")
        if not self._settings.reservoir_rows:
            self._stage("batch", made.in_order, rows, batches, rows=length)
            return batches
        chosen = self._channel("rows to be chosen")
        queue, numbers = self._settings.queue, self._numbers[1]
        reservoir = Reservoir(form, self._settings.reservoir_rows, made, queue, numbers)
        self._stage("mix", reservoir.mix, rows, chosen, rows=len, words=reservoir.words)
        self._stage("batch", reservoir.gather, chosen, batches, rows=length)
        return batches

    def _pool(self, endless: bool) -> Pool:
        it = self._settings
        pool = Pool(it.pool_chunks, it.start_chunks, it.chunk_share, endless=endless, numbers=self._numbers[0])
        self._channels.append(pool)
        return pool

    def _channel(self, what: str) -> Channel[Any]:
        channel: Channel[Any] = Channel(self._settings.queue, what)
        self._channels.append(channel)
        return channel

    def _stage(self, name: str, work: Any, inbox: Channel[Any], outbox: Channel[Any], **more: Any) -> None:
        self._stages.append(Stage(self._split, name, work, inbox, outbox, **more))
