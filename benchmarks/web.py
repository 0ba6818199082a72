"""What the page of a large run costs: CPU seconds to open it, to read it again, and to keep it open while it is idle.

    python benchmarks/web.py FOLDER                      # makes the run in FOLDER/big, unless it is there
    python benchmarks/web.py FOLDER --lines 100000 --networks 1000 --idle 60

`tengen web` runs as its own process, and its CPU time is read from /proc. The browser is not measured. A run of the
usual size (1,000,000 lines, 10,000 networks) takes 1.4 GB of disk.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tengen.config import load
from tengen.config.rendering import render
from tengen.match.results import MatchResult, append
from tengen.run import networks
from tests.helpers.web_runs import line, progress


def make(base: Path, lines: int, count: int) -> None:
    """A run with so many lines of progress and accepted networks, each of which was rated."""
    base.mkdir(parents=True)
    names = [f"tic_tac_toe-main-s{64 * number}-d{20 * number}" for number in range(1, count + 1)]
    more = {f"figure {number}": 1.0 / 3 for number in range(20)}  # as long as the lines of a run of Go
    with (base / "metrics.jsonl").open("w") as file:
        file.write(json.dumps(line(0.0, "session", mode="fused")) + "\n")
        for number in range(1, lines + 1):
            one = progress(number)
            file.write(json.dumps({**one, "figures": {**one["figures"], **more}}) + "\n")
            if number % max(lines // count, 1) == 0 and names[number * count // lines - 1 :]:
                name = names[number * count // lines - 1]
                rating = line(5.0 * number, "rating", network=name, elo=number**0.5, error=20.0, steps=number)
                file.write(json.dumps(rating) + "\n")
    for name in names:
        (base / networks.ACCEPTED / name).mkdir(parents=True)
        (base / networks.ACCEPTED / name / "model.safetensors").write_bytes(b"")
        (base / networks.ACCEPTED / name / networks.VERDICT).write_text('{"schema": 1, "accepted": true, "share": 0.6}')
    pairs = zip(names[1:], names, strict=False)
    append(base / "ratings" / "results.jsonl", *(MatchResult(a, b, 22, 1, 17) for a, b in pairs))
    (base / "config.yaml").write_text(render(load("tic_tac_toe")))  # last: a folder with it counts as a run


@contextlib.contextmanager
def serving(base: Path) -> Iterator[tuple[str, int]]:
    """The address of a `tengen web`, and the number of its process."""
    words = [sys.executable, "-m", "tengen", "web", str(base), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            yield child.stdout.readline().split()[0].rstrip("/"), child.pid
        finally:
            child.terminate()


def processor_seconds(process: int) -> float:
    """CPU time that a process has used so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--networks", type=int, default=10_000)
    parser.add_argument("--idle", type=float, default=60.0, help="seconds of watching while nothing happens")
    args = parser.parse_args()
    base = args.folder / "big"
    if not (base / "config.yaml").exists():
        make(base, args.lines, args.networks)

    with serving(base) as (address, process):

        def opened(what: str, path: str) -> None:
            cpu, began = processor_seconds(process), time.monotonic()
            with urllib.request.urlopen(address + path) as answer:
                size = len(answer.read())
            used, wall = processor_seconds(process) - cpu, time.monotonic() - began
            print(f"{what}: {used:.2f} s of CPU, {wall:.2f} s by the clock, {size / 1000:.0f} kB", flush=True)

        print(f"start of the server: {processor_seconds(process):.2f} s of CPU", flush=True)
        opened("the page", "/")
        opened("the run, first time", f"/api/runs/{base.name}")
        with (base / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(progress(args.lines + 1)) + "\n")
        opened("the run after a new line", f"/api/runs/{base.name}")
        opened("the run unchanged", f"/api/runs/{base.name}")
        with urllib.request.urlopen(address + "/api/events") as stream:  # as an open page does
            stream.readline()
            time.sleep(3)
            cpu, began = processor_seconds(process), time.monotonic()
            time.sleep(args.idle)
            share = (processor_seconds(process) - cpu) / (time.monotonic() - began)
        print(f"an open page while nothing happens: {100 * share:.2f} % of a core", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
