"""What the page of a large run costs: CPU seconds to open it, to read it again, and to keep it open while it is idle.

    python benchmarks/web.py FOLDER                      # makes the run in FOLDER/big, unless it is there
    python benchmarks/web.py FOLDER --lines 100000 --networks 1000 --idle 60
    python benchmarks/web.py FOLDER --watched 6          # what a page costs a run that goes on, in FOLDER/watched

With `--watched`, a run of tic-tac-toe goes on all the time. Stretches in which nobody looks alternate with stretches in
which an open page reads the run each time it changes. The CPU time of the run per row, with and without the page, is
compared, so the figure also holds on a busy machine.

`tengen web` runs as its own process, and its CPU time is read from /proc. The browser is not measured. A run of the
usual size (1,000,000 lines, 10,000 networks) takes 1.4 GB of disk.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tengen.config import load
from tengen.config.rendering import render
from tengen.match.results import MatchResult, append
from tengen.run import metrics, networks
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
    judged = {"schema": 1, "accepted": True, "kind": "share", "share": 0.6}
    for name in names:
        (base / networks.ACCEPTED / name).mkdir(parents=True)
        (base / networks.ACCEPTED / name / "model.safetensors").write_bytes(b"")
        (base / networks.ACCEPTED / name / networks.VERDICT).write_text(json.dumps(judged))
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


class OpenPage(threading.Thread):
    """Does what an open page does: waits for news, and then reads the run and the load of the machine."""

    def __init__(self, address: str, run: str) -> None:
        super().__init__(daemon=True)
        self._address, self._run, self._over = address, run, False
        self.reads = 0
        self.start()

    def run(self) -> None:
        read = 0.0
        with urllib.request.urlopen(self._address + "/api/events") as stream:
            while not self._over:
                line = stream.readline()
                if line.startswith(b"event: runs") and time.monotonic() - read > 4:  # seconds, as in app.js
                    read = time.monotonic()
                    self.reads += 1
                    for path in (f"/api/runs/{self._run}", "/api/machine"):
                        urllib.request.urlopen(self._address + path).read()

    def close(self) -> None:
        self._over = True
        self.join()


def watched(folder: Path, pairs: int, reports: int = 4) -> None:
    """The CPU time of a run per row, with and without a page; a stretch lasts for so many reports of the run."""
    base = folder / "watched"
    words = ["net.name=b2c16", "goal.minutes=600", "rating.minutes=100", "run.name=watched"]
    command = [sys.executable, "-m", "tengen", "run", "tic_tac_toe", "--base", str(base)]
    command += [word for text in words for word in ("--set", text)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:

        def report(after: float) -> tuple[float, int, float]:
            """Time of the run, rows and CPU seconds so far, when the run next reports."""
            while run.poll() is None:
                line = metrics.last(base / metrics.NAME, "progress")
                if line is not None and line["elapsed"] > after and line["steps"]:
                    return line["elapsed"], line["rows"], processor_seconds(run.pid)
                time.sleep(0.02)
            raise SystemExit(f"the run has ended; {base} must not hold a run that is finished")

        def stretch() -> float:
            """CPU milliseconds per row."""
            first = last = report(report(0.0)[0])
            for _ in range(reports):
                last = report(last[0])
            return 1000 * (last[2] - first[2]) / (last[1] - first[1])

        try:
            report(60.0)  # everything is compiled by then
            ratios = []
            with serving(base) as (address, process):
                for _ in range(pairs):
                    alone = stretch()
                    page, cpu, began = OpenPage(address, base.name), processor_seconds(process), time.monotonic()
                    seen = stretch()
                    share = (processor_seconds(process) - cpu) / (time.monotonic() - began)
                    page.close()
                    ratios.append(seen / alone)
                    print(
                        f"{alone:.3f} ms of CPU per row alone, {seen:.3f} with a page that read {page.reads} times: "
                        f"{ratios[-1]:.3f} x; the server took {100 * share:.1f} % of a core",
                        flush=True,
                    )
            print(f"median {statistics.median(ratios):.3f} x", flush=True)
        finally:
            run.terminate()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--networks", type=int, default=10_000)
    parser.add_argument("--idle", type=float, default=60.0, help="seconds of watching while nothing happens")
    parser.add_argument("--watched", type=int, metavar="N", help="pairs of stretches with and without a page")
    args = parser.parse_args()
    if args.watched:
        watched(args.folder, args.watched)
        return 0
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
