"""Rows per second of `--mode cluster` against the fused loop, on this machine.

    python benchmarks/cluster_speed.py connect_four --rows 200000

Both modes run the same configuration until there are that many rows, one after the other. Compared are the rows per
second of the second half of the rows, after everything is compiled. All further words go to `tengen run`.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tengen.run import metrics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--rows", type=int, default=200_000, help="of each run (%(default)s)")
    parser.add_argument("--modes", default="fused,cluster", help="with commas (%(default)s)")
    args, words = parser.parse_known_args()
    found = {}
    with tempfile.TemporaryDirectory(prefix="tengen-speed-") as folder:
        for mode in args.modes.split(","):
            base = Path(folder, mode)
            fixed = (f"goal.rows={args.rows}", "goal.minutes=null", "rating.minutes=100000")
            options = [word for text in fixed for word in ("--set", text)]
            command = [sys.executable, "-m", "tengen", "run", args.config, "--base", str(base), "--mode", mode]
            subprocess.run([*command, *options, *words], check=True, stdout=sys.stderr)
            found[mode] = speed(base, args.rows)
            print(f"{mode:<8} {found[mode]:,.0f} rows/s", flush=True)
    if {"fused", "cluster"} <= set(found):
        print(f"cluster / fused: {found['cluster'] / max(found['fused'], 1e-9):.2f}")


def speed(base: Path, rows: int) -> float:
    """Rows per second of the second half."""
    lines = [line for line in metrics.read(base / metrics.NAME).lines if line["kind"] == "progress"]
    middle = next(line for line in lines if line["rows"] >= rows / 2)
    end = next(line for line in lines if line["rows"] >= rows or line["stage"] == "done")
    return (end["rows"] - middle["rows"]) / max(end["elapsed"] - middle["elapsed"], 1e-9)


if __name__ == "__main__":
    main()
