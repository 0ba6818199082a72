"""Rows per second of `--mode cluster` against the fused loop, on this machine.

    python benchmarks/cluster_speed.py connect_four --minutes 2

Both modes run the same configuration for as long, one after the other. Compared are the rows per second in the second
half of the time in which there are games, without compiling. All further words go to `tengen run`.
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
    parser.add_argument("--minutes", type=float, default=2.0, help="of each run (%(default)g)")
    parser.add_argument("--modes", default="fused,cluster", help="with commas (%(default)s)")
    args, words = parser.parse_known_args()
    found = {}
    with tempfile.TemporaryDirectory(prefix="tengen-speed-") as folder:
        for mode in args.modes.split(","):
            base = Path(folder, mode)
            fixed = (f"goal.minutes={args.minutes}", "rating.minutes=100000")
            options = [word for text in fixed for word in ("--set", text)]
            command = [sys.executable, "-m", "tengen", "run", args.config, "--base", str(base), "--mode", mode]
            subprocess.run([*command, *options, *words], check=True, stdout=sys.stderr)
            found[mode] = speed(base)
            print(f"{mode:<8} {found[mode]:,.0f} rows/s", flush=True)
    if {"fused", "cluster"} <= set(found):
        print(f"cluster / fused: {found['cluster'] / max(found['fused'], 1e-9):.2f}")


def speed(base: Path) -> float:
    """Rows per second of the second half of the time in which there were games."""
    lines = [line for line in metrics.read(base / metrics.NAME).lines if line["kind"] == "progress" and line["rows"]]
    begin, end = lines[0], lines[-1]
    middle = min(lines, key=lambda line: abs(line["elapsed"] - (begin["elapsed"] + end["elapsed"]) / 2))
    last = next(line for line in reversed(lines) if line["stage"] in ("playing", "learning", "waiting for games"))
    return (last["rows"] - middle["rows"]) / max(last["elapsed"] - middle["elapsed"], 1e-9)


if __name__ == "__main__":
    main()
