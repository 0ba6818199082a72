"""The shuffle: its speed next to NumPy alone on the same bytes, and its peak memory next to its setting.

    python benchmarks/shuffle.py --folder /tmp/shuffle --memory 512 --times 10

Makes chunks of random rows of 9x9 Go, `times` as many bytes as the memory setting (in MB), and then, each in a process
of its own and in turn, `--repeats` times:

    numpy     np.load of the chunks, a permutation of as many rows as a file has, np.savez; one thread, nothing checked
    shuffle   all rows of the window, drawn, shuffled as a whole, checked, hashed and on the disk (fsync)

Speed is bytes of rows per second, the median of the repeats. Peak memory is what the system says of the whole process
(VmHWM), and what of it was there before the shuffle began: Python, NumPy and JAX.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from tengen.config.settings.data import WindowSettings
from tengen.config.settings.parts import ShuffleSettings
from tengen.data.format.chunk import write_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat, blank
from tengen.data.shuffle.folders import clean
from tengen.data.shuffle.plan import WindowSurvey, plan
from tengen.data.shuffle.shuffle import shuffle
from tengen.data.store.store import Store

FORM = RowFormat((9, 9, 17), 8, 82, ("opponent_policy", "ownership", "score"))
GAME = GameIdentity("go", 1, {"size": 9})


def main() -> int:
    args = _arguments()
    base = args.folder
    if args.only:
        print(json.dumps(measure_numpy(args) if args.only == "numpy" else measure_shuffle(args)))
        return 0
    base.mkdir(parents=True, exist_ok=True)
    rows = make_chunks(args)
    size = rows * FORM.row_bytes
    print(
        f"{rows:,} rows of {FORM.row_bytes} bytes, {size / 1e9:.2f} GB, memory_bytes {args.memory * 10**6:,}",
        flush=True,
    )
    found: dict[str, list[dict[str, Any]]] = {"numpy": [], "shuffle": []}
    for _ in range(args.repeats):
        for what, results in found.items():
            os.sync()  # what one has left to write must not slow the other down
            run = subprocess.run(
                [sys.executable, __file__, *sys.argv[1:], "--only", what], capture_output=True, text=True
            )
            if run.returncode:
                print(run.stderr, file=sys.stderr)
                return 1
            results.append(json.loads(run.stdout))
            print(f"  {what:8} {_words(results[-1], size)}", flush=True)
    speed = {what: size / statistics.median(r["seconds"] for r in results) for what, results in found.items()}
    peak = max(result["peak"] for result in found["shuffle"])
    before = max(result["before"] for result in found["shuffle"])
    setting = args.memory * 10**6
    print(f"speed: {speed['shuffle'] / 1e6:,.0f} MB/s, {speed['shuffle'] / speed['numpy']:.0%} of NumPy's")
    print(f"memory: {peak / setting:.0%} of its setting, {(peak - before) / setting:.0%} without the program itself")
    shutil.rmtree(base / "numpy", ignore_errors=True)
    shutil.rmtree(base / "shuffled", ignore_errors=True)
    return 0


def make_chunks(args: argparse.Namespace) -> int:
    """Fill the store up to the size that is wanted; rows in it."""
    store = Store(args.folder / "selfplay")
    wanted = args.memory * 10**6 * args.times // FORM.row_bytes
    rows = store.listing().rows
    draw = np.random.default_rng(rows)
    block = blank(FORM, args.chunk)
    block["planes"][:] = draw.integers(0, 256, block["planes"].shape)
    block["planes"][:, -1] &= 0x80  # 1377 bits: seven are spare
    policy = draw.dirichlet(np.full(82, 0.1), args.chunk).astype(np.float16)
    block["policy"][:] = block["opponent_policy"][:] = policy
    block["scalars"][:] = draw.normal(size=block["scalars"].shape)
    block["outcome"][:, 0] = block["weight"][:] = block["policy_weight"][:] = block["opponent_weight"][:] = 1
    block["game"][:, 1] = np.arange(args.chunk) // 60
    while rows < wanted:
        block["game"][:, 0] = store.reserve("net").stem[:10]
        write_chunk(store.reserve("net"), FORM, block, GAME, network="net")
        rows += args.chunk
    return rows


def measure_numpy(args: argparse.Namespace) -> dict[str, Any]:
    """Read, permute and write, a file's worth of rows at a time."""
    target = args.folder / "numpy"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    before, began = _peak(), time.perf_counter()
    paths = [item.path for item in Store(args.folder / "selfplay").chunks()]
    together = max(args.file // args.chunk, 1)
    random = np.random.default_rng(0)
    for number in range(0, len(paths), together):
        blocks = []
        for path in paths[number : number + together]:
            with np.load(path) as file:
                blocks.append({name: file[name] for name in FORM.fields})
        order = random.permutation(sum(len(block["ply"]) for block in blocks))
        np.savez(
            target / f"{number:05d}.npz",
            allow_pickle=False,
            **{name: np.concatenate([block[name] for block in blocks])[order] for name in FORM.fields},
        )
    return {"seconds": time.perf_counter() - began, "before": before, "peak": _peak(), **_cores()}


def measure_shuffle(args: argparse.Namespace) -> dict[str, Any]:
    """Shuffle everything."""
    settings = ShuffleSettings(
        keep_target_rows=10**9 - 1,
        rows_per_file=args.file,
        memory_bytes=args.memory * 10**6,
        workers=args.workers,
        keep_shuffles=1,
    )
    clean(args.folder, settings)
    before, began = _peak(), time.perf_counter()
    what = plan(WindowSurvey(Store(args.folder / "selfplay"), FORM, GAME), settings, WindowSettings(min_rows=10**12))
    planned = time.perf_counter()
    changes: dict[str, float] = {}
    done = shuffle(what, args.folder, 0, lambda step: changes.update({step.doing: time.perf_counter()}))
    seconds = time.perf_counter() - began
    assert done is not None
    assert not done.index["not_used"]
    assert sum(file.rows for file in (*done.train, *done.validation)) == what.window_rows
    passes = {
        "looking": planned - began,
        "reading": changes["reading"] - planned,
        "writing": changes["writing"] - changes["reading"],
    }
    result = {
        "seconds": seconds,
        "before": before,
        "peak": _peak(),
        "threads": what.memory.readers,
        **passes,
        **_cores(),
    }
    shutil.rmtree(done.folder)
    return result


def _peak() -> int:
    """Bytes: the most that this process has had in memory. Linux only."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("the system does not say how much memory a process has had")


def _cores() -> dict[str, float]:
    """Seconds that the cores were busy for this process, in it and in the system."""
    times = os.times()
    return {"user": times.user, "system": times.system}


def _words(result: dict[str, Any], size: int) -> str:
    passes = [f"{name} {result[name]:.1f} s" for name in ("looking", "reading", "writing") if name in result]
    return (
        f"{result['seconds']:.1f} s, {size / result['seconds'] / 1e6:,.0f} MB/s; "
        f"cores busy {result['user']:.1f} s and {result['system']:.1f} s in the system; "
        f"peak {result['peak'] / 1e6:,.0f} MB, {result['before'] / 1e6:,.0f} MB before it began"
        + (f" ({', '.join(passes)}; {result['threads']} threads)" if passes else "")
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder", type=Path, required=True, help="where to work; chunks are left there for the next time"
    )
    parser.add_argument("--memory", type=int, default=512, help="memory_bytes, in MB")
    parser.add_argument("--times", type=int, default=10, help="the window is so many times as large")
    parser.add_argument("--chunk", type=int, default=8192, help="rows in a chunk")
    parser.add_argument("--file", type=int, default=65_536, help="rows in a file")
    parser.add_argument("--workers", type=int, help="threads (default: one for each core)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=("numpy", "shuffle"), help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
