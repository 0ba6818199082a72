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
import sys
import tempfile
from pathlib import Path
from statistics import median

import jax

from tengen import games, nets
from tengen.bench.loader import WAYS, LoaderCase
from tengen.config.settings.data import LoaderSettings
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.loader.loader import LoaderStats
from tengen.errors import TengenError


def main() -> int:
    args = _arguments()
    if args.cores:
        os.sched_setaffinity(0, list(os.sched_getaffinity(0))[: args.cores])
    try:
        game = games.make(args.game, **({} if args.size is None else {"size": args.size}))
        form = RowFormat.of(game, nets.possible_heads(game) if args.heads is None else args.heads)
        case = LoaderCase(
            *(form, GameIdentity.of(game), args.files, args.rows, args.compress, args.batch, args.readers),
            *(args.reservoir, args.share, args.seconds, args.transfer),
        )
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            paths = case.write(Path(folder))
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
                measured = [case.measure(way, paths) for _ in range(args.repeats)]
                speeds = [found.rows_per_second for found in measured]
                work = median(found.core_seconds for found in measured)
                print(
                    f"  {way}: {median(speeds):,.0f} rows/s, {median(speeds) * form.row_bytes / 1e6:,.0f} MB/s "
                    f"({min(speeds):,.0f} to {max(speeds):,.0f}), {work * 1e6:.2f} us of one core a row\n"
                    f"    at work: {_shares(measured[-1].stats)}",
                    flush=True,
                )
    except TengenError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


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
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS, help="order, reservoir, pool (all)")
    parser.add_argument("--cores", type=int, default=0, help="use only so many cores (0: all)")
    parser.add_argument("--transfer", action="store_true", help="put every batch onto the device, and wait for it")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to draw from the pool (5)")
    parser.add_argument("--repeats", type=int, default=5, help="the median counts (5)")
    parser.add_argument("--folder", default=None, help="where the files go for the while (the system's)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
