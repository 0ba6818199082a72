"""The loader: rows per second from files in the page cache to batches on the host, and where the time goes.

    python benchmarks/loader.py --cores 2
    python benchmarks/loader.py --cores 2 --compress
    python benchmarks/loader.py --ways reservoir --transfer          # and onto the device, as a trainer does

Writes random rows of a game to a temporary folder, all files alike, and reads them once so that they are in the page
cache. Then it times each way of loading them: `order` and `reservoir` read a list of files to its end; `pool` draws for
some seconds from an endless folder, once all its chunks are in memory. Prints the median over the repeats, the slowest
and the fastest, the processor's time per row, which other programs on the machine disturb least, and of the last repeat
each stage's share of time at work.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np
from learner import random_rows

from tengen import games, nets
from tengen.config.settings.data import LoaderSettings
from tengen.data.format.chunk import write_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.loader.loader import Loader, LoaderStats
from tengen.data.loader.sources import FileList, Folder
from tengen.errors import TengenError


def main() -> int:
    args = _arguments()
    if args.cores:
        os.sched_setaffinity(0, list(os.sched_getaffinity(0))[: args.cores])
    try:
        game = games.make(args.game, **({} if args.size is None else {"size": args.size}))
        form = RowFormat.of(game, nets.possible_heads(game) if args.heads is None else args.heads)
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            paths = write(Path(folder), form, GameIdentity.of(game), args)
            size = sum(path.stat().st_size for path in paths)
            print(
                f"{game.name} {'x'.join(map(str, game.planes_shape[:2]))}, {form.row_bytes} bytes a row: "
                f"{args.files} files of {args.rows:,} rows, {size / 1e6:,.0f} MB"
                f"{' compressed' if args.compress else ''}; batches of {args.batch:,}, {args.readers} readers, "
                f"{len(os.sched_getaffinity(0))} cores"
                f"{f', onto {jax.local_devices()[0].device_kind}' if args.transfer else ''}",
                flush=True,
            )
            for way in args.ways:
                measured = [
                    measure(way, paths, Path(folder), form, GameIdentity.of(game), args) for _ in range(args.repeats)
                ]
                speeds = [speed for speed, _, _ in measured]
                work = median(work for _, work, _ in measured)
                print(
                    f"  {way}: {median(speeds):,.0f} rows/s, {median(speeds) * form.row_bytes / 1e6:,.0f} MB/s "
                    f"({min(speeds):,.0f} to {max(speeds):,.0f}), {work * 1e6:.2f} us of one core a row\n"
                    f"    at work: {_shares(measured[-1][2])}",
                    flush=True,
                )
    except TengenError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def write(folder: Path, form: RowFormat, game: GameIdentity, args: argparse.Namespace) -> list[Path]:
    """The files, in the page cache."""
    paths = [folder / f"{number:06}.npz" for number in range(args.files)]
    rows = random_rows(form, args.rows)
    rows["game"][:, 1] = np.arange(args.rows) // 60
    write_chunk(paths[0], form, rows, game, network="none", compress=args.compress)
    for path in paths[1:]:
        shutil.copyfile(paths[0], path)
    for path in paths:
        path.read_bytes()
    return paths


def measure(
    way: str, paths: list[Path], folder: Path, form: RowFormat, game: GameIdentity, args: argparse.Namespace
) -> tuple[float, float, LoaderStats]:
    """Rows per second, seconds of the processor per row, and where the time went."""
    more: dict[str, dict[str, Any]] = {
        "order": {},
        "reservoir": {"reservoir_rows": args.reservoir},
        "pool": {
            "reservoir_rows": args.reservoir,
            "pool_chunks": len(paths),
            "start_chunks": len(paths),
            "chunk_share": args.share,
        },
    }
    settings = LoaderSettings(batch=args.batch, readers=args.readers, **more[way])
    source = Folder(folder) if way == "pool" else FileList(paths)
    with Loader(source, form, game, settings) as loader:
        if way == "pool":
            loader.get_next_batch()  # everything is in memory
        begin, worked, rows = time.perf_counter(), time.process_time(), 0
        while (batch := loader.get_next_batch()) is not None:
            rows += len(batch[0])
            if args.transfer:
                jax.block_until_ready(jax.device_put(batch))
            if way == "pool" and time.perf_counter() - begin > args.seconds:
                break
        seconds, worked = time.perf_counter() - begin, time.process_time() - worked
        return rows / seconds, worked / rows, loader.get_stats()


def _shares(stats: LoaderStats) -> str:
    words = []
    for stage in stats.stages:
        whole = stage.working + stage.waiting_for_input + stage.waiting_for_output
        words.append(f"{stage.name} {stage.working / whole:.0%}" if whole else f"{stage.name} -")
    return ", ".join(words)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Rows per second of the loader.")
    parser.add_argument("--game", default="go", help="whose rows (go)")
    parser.add_argument("--size", type=int, default=9, help="size of the board, for games that have one (9)")
    parser.add_argument("--heads", nargs="*", default=None, help="extra targets in the rows (all that the game has)")
    parser.add_argument("--files", type=int, default=200, help="files (200)")
    parser.add_argument("--rows", type=int, default=8192, help="rows in a file (8192)")
    parser.add_argument("--compress", action="store_true", help="files are compressed")
    parser.add_argument("--batch", type=int, default=4096, help="rows in a batch (4096)")
    parser.add_argument("--readers", type=int, default=LoaderSettings.readers, help="threads that read files")
    parser.add_argument("--reservoir", type=int, default=200_000, help="rows in the reservoir (200000)")
    parser.add_argument(
        "--share", type=float, default=0.25, help="share of a chunk taken at a time from the pool (0.25)"
    )
    parser.add_argument(
        "--ways", nargs="+", default=["order", "reservoir", "pool"], help="order, reservoir, pool (all)"
    )
    parser.add_argument("--cores", type=int, default=0, help="use only so many cores (0: all)")
    parser.add_argument("--transfer", action="store_true", help="put every batch onto the device, and wait for it")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to draw from the pool (5)")
    parser.add_argument("--repeats", type=int, default=5, help="the median counts (5)")
    parser.add_argument("--folder", default=None, help="where the files go for the while (the system's)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
