"""`--mode cluster`: its speed next to the fused loop's, and what the learner's side takes in from many actors.

    python benchmarks/cluster.py speed connect_four --seconds 60
    python benchmarks/cluster.py intake                              # everything below, 9x9 Go
    python benchmarks/cluster.py intake --parts pieces,curve --cores 2 --actors 1 5 10 20 100

`speed` runs a configuration in both modes, one after the other, and compares the rows per second in a window of at
least that many seconds, which begins some time (`--warmup`) after the first training step: everything is compiled by
then, and not all games are at the same move any more. Words that it does not know go to `tengen run`.

`intake` needs no GPU. A real self-play actor first plays a few games of 9x9 Go with the configuration's own search;
their rows are repeated to chunks of `--rows`, packed as actors pack them. A few processes of Ray then stand for many
actors: each answers for its share of them, at the rate of a real one (`--rate`). Learner, fleet, files and ring are
those of a run.

  pieces   processor time per row of each piece, without Ray
  curve    rows per second against the number of actors; processor time per row of the learner's process (all threads
           and its busiest one), of Ray's own processes, and what two cores could take in by that (drawn by
           `--plot FILE.svg`)
  network  seconds from a new network to the last of `--listeners` actors
  memory   the learner's memory, without the object store, while `--senders` actors send as fast as they can, and during
           the end of the run

Processor time is what other programs on the machine disturb least.
"""

import argparse
import asyncio
import contextlib
import logging
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np

from tengen.analysis.drawing import Chart, ticks, titled
from tengen.cluster.actor import (
    ActorPlace,
    ActorStatus,
    GamesChunk,
    PlayedChunks,
    PublishedNetwork,
    SelfplayActor,
    pack,
    unpack,
)
from tengen.cluster.connection import library
from tengen.cluster.nodes import NodeShares
from tengen.config import load
from tengen.config.sections import Config
from tengen.monitor.display import Display
from tengen.monitor.run_view import RunView
from tengen.run import metrics
from tengen.selfplay.history import Finished
from tengen.words import short

_PROCESSES = 4  # of Ray, that stand for all actors
_TICK = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    speed = commands.add_parser("speed", help="rows per second next to the fused loop's")
    speed.add_argument("config")
    speed.add_argument("--seconds", type=float, default=60.0, help="of each measurement (%(default)g)")
    speed.add_argument("--warmup", type=float, default=15.0, help="seconds of learning before it (%(default)g)")
    speed.add_argument("--modes", default="fused,cluster", help="with commas (%(default)s)")
    intake = commands.add_parser("intake", help="what the learner's side takes in")
    intake.add_argument("--parts", default="pieces,curve,network,memory", help="with commas (%(default)s)")
    intake.add_argument("--cores", type=int, help="of the learner's process (all)")
    intake.add_argument("--actors", type=int, nargs="+", default=[1, 2, 5, 10, 20, 50, 200, 1000])
    intake.add_argument("--rate", type=float, default=15_000.0, help="rows per second of an actor (%(default)g)")
    intake.add_argument("--rows", type=int, default=10_000, help="of a chunk (%(default)s)")
    intake.add_argument("--seconds", type=float, default=20.0, help="of each measurement (%(default)g)")
    intake.add_argument("--listeners", type=int, default=64, help="actors that get networks (%(default)s)")
    intake.add_argument("--senders", type=int, default=1000, help="actors while memory is measured (%(default)s)")
    intake.add_argument("--net", default="b6c96", help="network that is sent (%(default)s)")
    intake.add_argument("--plot", type=Path, metavar="FILE.svg", help="where the curve is drawn (nowhere)")
    intake.add_argument("--chunk", type=Path, help="file with the games to send; played and written if it is absent")
    intake.add_argument("--folder", type=Path, help="where runs are written (the folder for temporary files)")
    args, words = parser.parse_known_args()
    if args.command == "speed":
        compare(args, words)
    elif words:
        parser.error(f"unrecognized arguments: {' '.join(words)}")
    else:
        measure(args)


def compare(args: argparse.Namespace, words: Sequence[str]) -> None:
    """Both modes, one after the other."""
    found = {}
    goal = ("goal.rows=null", "goal.minutes=null", "goal.steps=1000000000")
    fixed = (*goal, "rating.minutes=100000", "rating.references=[]", "rating.earlier=0")  # without any match
    options = [word for text in fixed for word in ("--set", text)]
    with tempfile.TemporaryDirectory(prefix="tengen-speed-") as folder:
        for mode in args.modes.split(","):
            base = Path(folder, mode)
            command = [sys.executable, "-m", "tengen", "run", args.config, "--base", str(base), "--mode", mode]
            with subprocess.Popen([*command, *options, *words], stdout=sys.stderr) as process:
                try:
                    first, last = window(base, args.warmup, args.seconds, process)
                finally:
                    process.terminate()
            seconds = last["elapsed"] - first["elapsed"]
            rates = {name: (last[name] - first[name]) / seconds for name in ("rows", "steps")}
            found[mode] = rates["rows"]
            texts = ", ".join(f"{value:,.1f} {name}/s" for name, value in rates.items())
            print(f"{mode:<8} {texts} in {seconds:.0f} s, from {first['elapsed']:.0f} s on", flush=True)
    if {"fused", "cluster"} <= set(found):
        print(f"cluster / fused: {found['cluster'] / max(found['fused'], 1e-9):.2f}")


def window(base: Path, warmup: float, seconds: float, process: subprocess.Popen[bytes]) -> tuple[Any, Any]:
    """The progress of a run at both ends of the measured time, for which this waits."""
    while process.poll() is None:
        lines = [line for line in metrics.read(base / metrics.NAME).lines if line["kind"] == "progress"]
        learning = [line for line in lines if line["steps"]]
        after = [line for line in learning if line["elapsed"] >= learning[0]["elapsed"] + warmup]
        if after and after[-1]["elapsed"] >= after[0]["elapsed"] + seconds:
            return after[0], after[-1]
        time.sleep(0.5)
    raise SystemExit("the run has ended before it was measured")


def measure(args: argparse.Namespace) -> None:
    """The parts of `intake` that are wanted."""
    parts = args.parts.split(",")
    if args.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.cores])
    with_ray = bool({"curve", "network", "memory"} & set(parts))
    if with_ray:  # before JAX, which does not like to be forked
        os.environ.setdefault("RAY_worker_niceness", "0")  # as in a run on this machine
        local = {"address": "local", "include_dashboard": False, "num_cpus": _PROCESSES, "num_gpus": 0}
        library().init(**local, log_to_driver=False, logging_level=logging.ERROR)
    chunk = enlarged(unpack(played(args.chunk)), args.rows)
    print(
        f"9x9 Go: chunks of {chunk.rows:,} rows, {chunk.games:,} games, {len(chunk.data) / chunk.rows:.0f} bytes a row "
        f"compressed; {len(os.sched_getaffinity(0))} cores",
        flush=True,
    )
    if "pieces" in parts:
        pieces(chunk, args)
    if with_ray:
        with SyntheticCluster(chunk) as cluster:
            if "curve" in parts:
                curve(cluster, args)
            if "network" in parts:
                network(cluster, args)
            if "memory" in parts:
                memory(cluster, args)


def settings(args: argparse.Namespace, *overrides: str) -> Config:
    """A run of 9x9 Go that takes in rows, and learns nothing. It has a small network, which nobody uses."""
    fixed = ("net.name=b1c8", "data.ring_rows=500000", "goal.minutes=null")
    return load("go9", [*fixed, "selfplay.games=64", "rating.minutes=100000", *overrides])


def played(path: Path | None, rows: int = 2500) -> GamesChunk:
    """Games of a real self-play actor, from a file if there is one."""
    if path is not None and path.exists():
        found = unpack(GamesChunk(0, 0, 0, 0, path.read_bytes()))
        return pack(0, [found._replace(rows_count=np.int32(len(found.rows["ply"])))])
    import jax
    from flax import nnx

    from tengen import nets
    from tengen.selfplay.driver import SelfplayDriver

    config = load("go9", ["net.name=b1c8", "selfplay.games=64", f"data.chunk_rows={rows}"])
    driver = SelfplayDriver(config)
    weights = driver.weights(nets.build(driver.spec, driver.game, nnx.Rngs(0), dtype=config.net.dtype))
    actor, parts, count = SelfplayActor(config, ActorPlace(1, 2, 1.0)), [], 0
    actor.take(0, PublishedNetwork(jax.device_get(jax.tree.leaves(weights)), config))
    while count < rows:
        for chunk in actor.play().chunks:
            parts.append(unpack(chunk))
            count += chunk.rows
    chunk = pack(0, parts)
    if path is not None:
        path.write_bytes(chunk.data)
    return chunk


def enlarged(found: Finished, rows: int) -> GamesChunk:
    """These games again and again, with other numbers, until there are that many rows.

    Copies of the large fields are farther apart than zlib looks back, so they are packed no better than other games.
    """
    times = max(round(rows / len(found.rows["ply"])), 1)
    shift = np.uint32(1 << 20)
    parts = [
        found._replace(
            number=found.number + np.array([0, copy * shift], np.uint32),
            rows={**found.rows, "game": found.rows["game"] + np.array([0, copy * shift], np.uint32)},
        )
        for copy in range(times)
    ]
    return pack(0, parts)


def pieces(chunk: GamesChunk, args: argparse.Namespace) -> None:
    """Processor time per row of everything that happens to a chunk."""
    import zlib

    import jax

    from tengen.data.format import sanity
    from tengen.data.format.chunk import write_chunk
    from tengen.data.format.identity import GameIdentity
    from tengen.loop.components import Components
    from tengen.selfplay.collector import GameTally

    components = Components(settings(args))
    form, identity = components.form, GameIdentity.of(components.game)
    finished, ring = unpack(chunk), components.make_buffer()
    inflated, numbers = zlib.decompress(chunk.data), iter(range(10**9))

    def load_ring() -> None:
        nonlocal ring
        ring = jax.block_until_ready(components.load(ring, finished.rows, chunk.rows, 4096))

    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        jobs: dict[str, Callable[[], object]] = {
            "pack (in the actor)": lambda: pack(0, [finished]),
            "unpack": lambda: unpack(chunk),
            "  of which zlib": lambda: zlib.decompress(chunk.data),
            "count results": lambda: GameTally().plus(finished),
            "check": lambda: list(sanity.problems(form, finished.rows)),
            "write to disk, with check": lambda: write_chunk(
                Path(folder, f"{next(numbers)}.npz"), form, finished.rows, identity, network="go9"
            ),
            "into the ring": load_ring,
        }
        print(f"{'piece':<28} us of processor time a row   ({len(inflated) / chunk.rows:.0f} bytes a row unpacked)")
        for name, job in jobs.items():
            job()
            costs = []
            for _ in range(7):
                began = time.process_time()
                job()
                costs.append(time.process_time() - began)
            print(f"{name:<28} {1e6 * median(costs) / chunk.rows:8.2f}", flush=True)


class ManyActors:
    """Stands for many self-play actors. Calls are coroutines, so thousands can be under way."""

    def __init__(self, chunk: GamesChunk) -> None:
        self._played = PlayedChunks((chunk,), 64.0 * chunk.rows)
        self._due: dict[int, float] = {}  # actor -> when it has its next chunk
        self._heard: dict[int, tuple[int, float]] = {}  # actor -> version of its network, and when it came
        self._rows: dict[int, int] = {}
        self._seconds = 0.0

    async def begin(self, seconds: float) -> None:
        """Forget all actors. The next ones have a chunk after every that many seconds."""
        self._seconds, self._due, self._heard, self._rows = seconds, {}, {}, {}

    async def play(self, actor: int) -> PlayedChunks:
        now = time.monotonic()
        due = max(self._due.get(actor, now + self._seconds * (actor % 97) / 97), now - self._seconds)
        self._due[actor] = due + self._seconds
        await asyncio.sleep(max(due - now, 0.0))
        self._rows[actor] = self._rows.get(actor, 0) + self._played.chunks[0].rows
        return self._played

    async def take(self, actor: int, version: int, network: PublishedNetwork) -> None:
        self._heard[actor] = version, time.monotonic()

    async def look(self, actor: int) -> ActorStatus:
        return ActorStatus("n", os.getpid(), "playing", version=0, rows=self._rows.get(actor, 0))

    async def heard(self) -> dict[int, tuple[int, float]]:
        return self._heard

    async def stop(self, actor: int) -> None:
        pass


class OneOfMany:
    """The handle of one of the actors that a process stands for."""

    def __init__(self, process: Any, actor: int) -> None:
        self._process, self._actor = process, actor

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._process, name)
        return SimpleNamespace(remote=lambda *arguments: method.remote(self._actor, *arguments))


class SyntheticCluster:
    """As `RayCluster`, on the Ray that is started, with actors of which several are in each process."""

    def __init__(self, chunk: GamesChunk) -> None:
        self._real, self.chunk = library(), chunk
        self.excluded: dict[str, str] = {}
        self.names, self.shares, self.actors, self._started = {"n": "here"}, NodeShares(1, 0.0, 0.0), 1, 0

    def __enter__(self) -> "SyntheticCluster":
        made = self._real.remote(num_cpus=1, max_concurrency=100_000)(ManyActors)
        self.processes = [made.remote(self.chunk) for _ in range(_PROCESSES)]
        self.begin(1, 1.0)
        # The actors outlive a run, so it may not kill them.
        self.ray = SimpleNamespace(**{name: getattr(self._real, name) for name in ("put", "get", "wait", "exceptions")})
        self.ray.kill = lambda handle: None
        return self

    def __exit__(self, *_: object) -> None:
        self._real.shutdown()

    def begin(self, actors: int, seconds: float) -> None:
        """Start again, with that many actors, each of which has a chunk after every that many seconds."""
        self.actors = actors
        self._real.get([process.begin.remote(seconds) for process in self.processes])

    def room(self) -> int:
        return self.actors

    def living(self) -> set[str]:
        return set(self.names)

    def idle(self) -> dict[str, str]:
        return {}

    def exclude(self, node: str, why: str) -> None:
        raise SystemExit(why)

    def start(self, actor: type, *arguments: Any) -> Any:
        self._started += 1
        return OneOfMany(self.processes[self._started % _PROCESSES], self._started)


class Silent(Display):
    def say(self, text: str) -> None:
        print(f"  {text}", flush=True)

    def tick(self) -> None:
        pass


@contextlib.contextmanager
def running(cluster: Any, config: Config, folder: Path | None, *, ends: bool = True) -> Iterator[Any]:
    """A run that is ready, on actors that stand for others. Unless it `ends` in order, the last games are dropped."""
    from tengen.cluster.run import ClusterRun

    class Intake(ClusterRun):
        """Takes in rows, and learns nothing."""

        @property
        def _waiting(self) -> str:
            return "the end of the measurement"

        def _learn(self, stop: Any) -> None:
            pass

        def _rate(self, name: str, seconds: float, stop: Any, *, last: bool = False) -> None:
            pass

        def _finish(self, stop: Any) -> None:
            if ends:
                super()._finish(stop)
            else:
                self.fleet.finish()

    with (
        tempfile.TemporaryDirectory(dir=folder) as base,
        Intake(config, Path(base, "run"), Silent(RunView(), 3600.0), cluster=cluster) as run,
    ):
        run.prepare()
        yield run


def curve(cluster: SyntheticCluster, args: argparse.Namespace) -> None:
    """Rows per second against the number of actors."""
    print("us of processor time a row, in the learner's process and in Ray's; what two cores could take in by that")
    columns = ("actors", "sent/s", "taken/s", "learner", "unpacker", "writer", "fleet", "others", "Ray", "two cores")
    print(" ".join(f"{name:>9}" for name in columns))
    points: list[tuple[int, float]] = []
    for actors in args.actors:
        cluster.begin(actors, cluster.chunk.rows / args.rate)
        marks: list[Any] = []
        with running(cluster, settings(args, f"cluster.actors={actors}"), args.folder, ends=False) as run:
            began = time.monotonic()
            # The first third is for starting and compiling.
            run.run(partial(mark, run, marks, [began + args.seconds / 3, began + args.seconds]))
        first, last = marks
        rows = max(last["rows"] - first["rows"], 1)
        costs = {name: 1e6 * (last[name] - first[name]) / rows for name in columns[3:9]}
        bound = 1e6 * min(2 / sum(costs.values()), 1 / max(costs.values()))  # a thread has no more than one core
        figures = (actors, actors * args.rate, rows / (last["time"] - first["time"]))
        points.append((actors, bound))
        texts = (
            *(f"{value:,.0f}" for value in figures),
            *(f"{value:.2f}" for value in costs.values()),
            f"{bound:,.0f}",
        )
        print(" ".join(f"{text:>9}" for text in texts), flush=True)
    if args.plot:
        args.plot.write_text(drawn(points, args.rate))


def drawn(points: Sequence[tuple[int, float]], rate: float) -> str:
    """The curve as a picture. A point is a number of actors, and the rows per second that two cores have time for."""
    box, top = (70, 40, 520, 300), 1.15 * max(bound for _, bound in points)
    drawing = titled(720, 350, "What the learner takes in on two cores")
    counts = [actors for actors, _ in points]
    chart = Chart(drawing, box, (math.log(min(counts) / 1.2), math.log(max(counts) * 1.2)), (0.0, top))
    levels = {level: short(level) for level in ticks(0.0, top)}
    chart.axes("actors", "rows per second", {math.log(actors): f"{actors:,}" for actors in counts}, levels)
    across = np.linspace(math.log(min(counts)), math.log(max(counts)), 200)
    sent = rate * np.exp(across)
    allowed = np.interp(across, np.log(counts), [bound for _, bound in points])
    lines = {
        "actors send": ("#4878a8", across[sent < top], sent[sent < top], 1.5),
        "processor time allows": ("#c8502c", across, allowed, 1.5),
        "taken in": ("#222222", across, np.minimum(sent, allowed), 3.5),
    }
    for number, (name, (colour, xs, ys, width)) in enumerate(lines.items()):
        chart.line(zip(xs.tolist(), ys.tolist(), strict=True), colour, stroke_width=width)
        chart.legend(number, name, colour)
    for actors, bound in points:
        chart.point(math.log(actors), bound, 3, "#c8502c", tip=f"{bound:,.0f} rows/s from {actors:,} actors")
    return drawing.to_text()


def mark(run: Any, marks: list[dict[str, float]], times: Sequence[float]) -> bool:
    """At each of these times, note the rows so far and the processor seconds; whether all are over."""
    now = time.monotonic()
    if now >= times[len(marks)]:
        threads = of_threads()
        marks.append({"time": now, "rows": run.counts.rows, "Ray": of_ray(), **threads})
        marks[-1]["others"] = time.process_time() - sum(threads.values())
    return len(marks) == len(times)


def network(cluster: SyntheticCluster, args: argparse.Namespace) -> None:
    """Seconds from a new network to the last actor."""
    import jax
    from flax import nnx

    from tengen import nets
    from tengen.cluster.fleet import Fleet

    config = settings(args, f"cluster.actors={args.listeners}")
    cluster.begin(args.listeners, cluster.chunk.rows / args.rate)
    net = nets.build(replace(config.net, name=args.net).architecture(), config.game.make(), nnx.Rngs(0))
    leaves = jax.device_get(jax.tree.leaves(nnx.state(nets.fold(net))))
    real: Any = cluster
    fleet, waits = Fleet(real, config, 1, print), []
    fleet.publish(leaves)
    fleet.start()
    for turn in range(12):
        while len(heard := heard_of(cluster)) < args.listeners or {version for version, _ in heard} != {turn}:
            fleet.take(0.01)
        waits.append(max(when for _, when in heard) - fleet.published[turn])
        fleet.publish(leaves)
    fleet.finish()
    size = sum(leaf.nbytes for leaf in leaves)
    print(
        f"{args.net} ({size / 1e6:.1f} MB) to the last of {args.listeners} actors, each with {args.rate:,.0f} rows/s: "
        f"{1e3 * median(waits[2:]):.0f} ms (median of {len(waits) - 2}, {1e3 * max(waits[2:]):.0f} at most)",
        flush=True,
    )


def heard_of(cluster: SyntheticCluster) -> list[tuple[int, float]]:
    """Version of the network of each actor, and when it came."""
    found = cluster.ray.get([process.heard.remote() for process in cluster.processes])
    return [each for one in found for each in one.values()]


def memory(cluster: SyntheticCluster, args: argparse.Namespace) -> None:
    """The learner's memory while very many actors send as fast as they can."""
    cluster.begin(args.senders, 0.0)
    seen: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            seen.append(own_memory())

    with running(cluster, settings(args, f"cluster.actors={args.senders}"), args.folder) as run:
        watcher, began, waiting = threading.Thread(target=watch), time.monotonic(), [0]
        before = own_memory()
        ended = [0]

        def stop() -> bool:
            waiting[0] = max(waiting[0], run.fleet.waiting)
            ended[0] = len(seen)
            return time.monotonic() - began >= args.seconds

        watcher.start()
        run.run(stop)
        over.set()
        watcher.join()
        third = max(ended[0] // 3, 1)
        peaks = [
            max(part, default=0) / 1e6
            for part in (seen[third : 2 * third], seen[2 * third : ended[0]], seen[ended[0] :])
        ]
        print(
            f"{args.senders} actors in {_PROCESSES} processes send without a pause: {run.counts.rows:,} rows taken, "
            f"at most {waiting[0]} results waited\nmemory of the learner's process: {before / 1e6:,.0f} MB before, "
            f"at most {peaks[0]:,.0f} in the second third, {peaks[1]:,.0f} in the last, {peaks[2]:,.0f} at the end",
            flush=True,
        )


def own_memory() -> int:
    """Bytes of this process, without files and without Ray's object store, which processes share."""
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.partition("RssAnon:")[2].split()[0])


def of_threads() -> dict[str, float]:
    """Processor seconds of the threads of this process in which there is Python of the run."""
    names = {"MainThread": "learner", "tengen-writer_0": "writer", "fleet": "fleet", "unpacking_0": "unpacker"}
    found = dict.fromkeys(names.values(), 0.0)
    for thread in threading.enumerate():
        if thread.name in names:
            fields = Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(")")[2].split()
            found[names[thread.name]] += (int(fields[11]) + int(fields[12])) / _TICK
    return found


def of_ray() -> float:
    """Processor seconds of Ray's own processes, without those that stand for actors."""
    total, inside = 0.0, {os.getpid()}
    found: dict[int, tuple[int, float, str]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            with contextlib.suppress(OSError):
                text = (path / "stat").read_text()
                fields = text.rpartition(")")[2].split()
                found[int(path.name)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICK, text
    for number in sorted(found):
        parent, seconds, text = found[number]
        if parent in inside:
            inside.add(number)
            total += 0.0 if "(ray::" in text else seconds
    return total


if __name__ == "__main__":
    main()
