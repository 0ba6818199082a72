"""The loader: rows per second from files in the page cache to batches on the host."""

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from tengen import files, nets
from tengen.bench.figures import Figure
from tengen.bench.learner import random_rows
from tengen.bench.networks import game_of
from tengen.bench.timing import spread
from tengen.config.settings.data import LoaderSettings
from tengen.cores import cores
from tengen.data.format.chunk import write_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.loader.loader import Loader, LoaderStats
from tengen.data.loader.sources import FileList, Folder

WAYS = ("order", "reservoir", "pool")
"""`order` and `reservoir` read a list of files to its end; `pool` draws from an endless folder that is in memory."""


class LoadedRows(NamedTuple):
    rows_per_second: float
    core_seconds: float  # of the processor per row
    stats: LoaderStats


class LoaderCase(NamedTuple):
    """What is loaded, and how."""

    form: RowFormat
    game: GameIdentity
    files: int = 40
    rows: int = 8192  # in a file
    compress: bool = False
    batch: int = 4096
    readers: int = LoaderSettings.readers
    reservoir: int = 200_000  # rows
    share: float = 0.25  # of a chunk taken at a time from the pool
    seconds: float = 2.0  # how long to draw from the pool
    transfer: bool = False  # put every batch onto the device, and wait for it

    def write(self, folder: Path) -> list[Path]:
        """The files, all alike, in the page cache."""
        paths = [folder / f"{number:06}.npz" for number in range(self.files)]
        rows = random_rows(self.form, self.rows)
        rows["game"][:, 1] = np.arange(self.rows) // 60
        write_chunk(paths[0], self.form, rows, self.game, network="none", compress=self.compress)
        for path in paths[1:]:
            shutil.copyfile(paths[0], path)
        for path in paths:
            files.read_bytes(path)
        return paths

    def measure(self, way: str, paths: list[Path]) -> LoadedRows:
        """Load the files in one of the ways."""
        more: dict[str, Any] = {} if way == "order" else {"reservoir_rows": self.reservoir}
        if way == "pool":
            more |= {"pool_chunks": len(paths), "start_chunks": len(paths), "chunk_share": self.share}
        settings = LoaderSettings(batch=self.batch, readers=self.readers, **more)
        source = Folder(paths[0].parent) if way == "pool" else FileList(paths)
        with Loader(source, self.form, self.game, settings) as loader:
            if way == "pool":
                loader.get_next_batch()  # everything is in memory
            begin, worked, rows = time.perf_counter(), time.process_time(), 0
            while (batch := loader.get_next_batch()) is not None:
                rows += len(batch[0])
                if self.transfer:
                    jax.block_until_ready(jax.device_put(batch))
                if way == "pool" and time.perf_counter() - begin > self.seconds:
                    break
            seconds, worked = time.perf_counter() - begin, time.process_time() - worked
            return LoadedRows(rows / seconds, worked / rows, loader.get_stats())


def loading(repeats: int) -> Iterator[Figure]:
    """9x9 Go with all targets, in every way."""
    game = game_of("go", 9)
    case = LoaderCase(RowFormat.of(game, nets.possible_heads(game)), GameIdentity.of(game))
    with tempfile.TemporaryDirectory(prefix="tengen-bench-") as folder:
        paths = case.write(Path(folder))
        for way in WAYS:
            speeds = [case.measure(way, paths).rows_per_second for _ in range(repeats)]
            name = f"loader, {way}, {len(cores())} cores"
            yield Figure(name, statistics.median(speeds), "rows/s", spread(speeds))
