"""Learning: drawing a batch, symmetries, forward, backward, optimiser and averages, as in a run. And loading its rows.

Random rows lie in a buffer on the device. A sample costs three times what an evaluation costs: forward, and the
gradients of inputs and weights. The loader is measured from files in the page cache to batches on the host.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from tengen import files, nets, train
from tengen.bench.figures import Figure
from tengen.bench.networks import game_of
from tengen.bench.timing import in_turn, spread
from tengen.config.settings.data import LoaderSettings
from tengen.config.settings.train import TrainSettings
from tengen.cores import cores
from tengen.data.format.chunk import write_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat, pack_planes
from tengen.data.loader.loader import Loader, LoaderStats
from tengen.data.loader.sources import FileList, Folder
from tengen.data.store import buffer
from tengen.games.core import Game
from tengen.nets.building import build_for_device
from tengen.train.alpha_zero import from_buffer


def learning(
    net: nets.Network, game: Game, settings: TrainSettings, rows: int = 100_000, steps: int = 100
) -> Callable[[], Array]:
    learner = train.Learner(net, game, settings)
    form = RowFormat.of(game, net.spec.heads)
    filled = buffer.make(form, rows)
    filled = filled._replace(rows=random_rows(form, rows), filled=filled.filled + rows)
    data = jax.device_put((filled, rows), learner.everywhere)
    state, key = learner.start(net), jax.random.key(0)

    def take() -> Array:
        nonlocal state
        state, figures = learner.many(state, key, from_buffer, data, steps)
        return figures["loss"]

    return take


def figures(name: str, size: int, batch: int, steps: int, repeats: int) -> list[Figure]:
    """Samples and arithmetic per second of a network for Go with all its heads, in bfloat16 with AdamW."""
    game = game_of("go", size)
    net = build_for_device(nets.spec(name, nets.possible_heads(game)), game, jax.random.key(0))
    take = learning(net, game, TrainSettings(batch=batch), rows=max(20_000, batch), steps=steps)
    timing = in_turn({"steps": take}, repeats)["steps"]
    rate = batch * steps / timing.median
    what = f"{name} on {size}x{size}, batch {batch}"
    return [
        Figure(f"learning, {what}", rate, "samples/s", timing.noise),
        Figure(f"arithmetic of learning, {what}", 3e-12 * nets.operations(net, game) * rate, "TFLOP/s", timing.noise),
    ]


def random_rows(form: RowFormat, count: int) -> dict[str, Any]:
    """Rows in which every target is possible."""
    numbers = np.random.default_rng(0)
    rows = {name: np.zeros((count, *shape), dtype) for name, (shape, dtype) in form.fields.items()}
    planes = numbers.random((count, *form.planes_shape), np.float32) < 0.3
    planes[..., :1] = True
    rows["planes"] = pack_planes(planes)
    for name in ("policy", "opponent_policy"):
        if name in rows:
            drawn = numbers.exponential(size=rows[name].shape)
            rows[name] = (drawn / drawn.sum(1, keepdims=True)).astype(np.float16)
    for name in ("weight", "policy_weight", "opponent_weight"):
        if name in rows:
            rows[name] += 1
    rows["outcome"] = np.eye(3, dtype=np.float32)[numbers.integers(0, 3, count)]
    rows["to_play"] = numbers.integers(0, 2, count).astype(np.int8)
    rows["moves_left"] = numbers.integers(0, 80, count).astype(np.int16)
    if "ownership" in rows:
        rows["ownership"] = numbers.integers(-1, 2, rows["ownership"].shape).astype(np.int8)
    return rows


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
