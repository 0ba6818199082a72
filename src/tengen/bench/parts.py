"""The benchmarks of `tengen bench all`: what each measures, where it can, and its share of the time.

Nothing here imports JAX before a measurement begins.
"""

import importlib.util
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from tengen.bench.figures import RATIO, Figure, Machine

Job = tuple[str, Callable[[], Iterable[Figure]]]
"""What is being measured, in words, and the function that does it."""

LEFT_OUT = {
    "the strength of trained networks": "minutes to hours of training each",
    "the ring of parts and the cluster": "minutes of running",
    "shuffling": "gigabytes of files",
    "the daemon, the dashboard and the browser": "an hour of running",
    "Hironaka's game next to PyTorch": "needs PyTorch",
}
"""Figures of docs/performance.md that are not measured, and why."""


@dataclass(frozen=True)
class BenchPart:
    """A benchmark that runs in a process of its own, with its own share of the time."""

    name: str
    about: str
    shares: tuple[float, float]  # of the time, on a GPU and on a CPU; 0 where it has nothing to measure
    jobs: Callable[[bool], Iterator[Job]]  # on a CPU, or not
    peer: bool = False  # whether it needs pgx and mctx

    def share(self, machine: Machine) -> float:
        return self.shares[machine.backend == "cpu"]

    def obstacle(self, machine: Machine) -> str:
        """Why it cannot be measured here; empty if it can."""
        if not self.share(machine):
            return "needs an NVIDIA GPU" if machine.backend == "cpu" else "is measured on CPUs only"
        if self.peer:
            absent = [name for name in ("pgx", "mctx") if importlib.util.find_spec(name) is None]
            return f"needs {' and '.join(absent)}, not installed here" if absent else ""
        return ""


def _rules(cpu: bool) -> Iterator[Job]:
    from tengen.bench import games

    pgx = games.pgx_is_installed()
    later = {"go 9x9": 60, "go 19x19": 250}  # superko compares with more positions as a game goes on
    suite = games.suite(64 if cpu else None)
    suite.sort(key=lambda case: case.label == "chess")  # pgx's takes longest to compile
    cases = [(case, 0) for case in suite if case.label in later]
    cases += [] if cpu else [(case, later[case.label]) for case, _ in cases]
    cases += [(case, 0) for case in suite if case.label not in later]
    for case, after in cases:

        def measure(case: games.BenchCase = case, after: int = after) -> Iterable[Figure]:
            steps, repeats = (10, 3) if cpu else (100, 5)
            (found,) = games.measure([case], steps, after, repeats, pgx and not after, seed=0)
            return found.figures()

        yield f"the rules of {case.label}", measure


def _program(cpu: bool) -> Iterator[Job]:
    from tengen.bench import games

    def measure() -> Iterator[Figure]:
        for found in games.go_programs(repeats=5):
            if found.differ:
                raise AssertionError(f"the GPU program of Go gives other results than the plain version: {found}")
            yield from found.figures()

    yield "the GPU program of Go", measure


def _search(cpu: bool) -> Iterator[Job]:
    from tengen.bench import search

    lines = search.SMALL[:2] if cpu else (*search.GPU[:8], *search.CHESS, *search.KATAGO, *search.GPU[8:])
    for line in lines:
        yield line.name, partial(search.figures, line, repeats=2 if line.simulations >= 800 else 3)


def _mctx(cpu: bool) -> Iterator[Job]:
    from tengen.bench import search

    for line in search.PEER_SMALL if cpu else (*search.PEER[:3], *search.PEER_CHESS, *search.PEER[3:]):
        yield f"{line.name} next to pgx + mctx", partial(search.figures, line, repeats=3, peer=True)


def _learning(cpu: bool) -> Iterator[Job]:
    from tengen.bench import learner

    # Network, board, batch, steps and repeats.
    many = (("b6c96", 9, 1024, 100, 5), ("b6c96", 9, 4096, 50, 3), ("b10c128", 19, 512, 50, 3))
    for line in (("b2c32", 9, 64, 5, 3),) if cpu else many:
        yield f"learning, {line[0]}, batch {line[2]}", partial(learner.figures, *line)


def _loop(cpu: bool) -> Iterator[Job]:
    from tengen.bench import running

    config, seconds = ("tic_tac_toe", 10.0) if cpu else ("go9", 15.0)
    # A goal of minutes may be shorter than the start takes on a busy CPU.
    options = ("--set", "goal.minutes=60")
    yield f"`tengen run {config}`", partial(running.figures, config, seconds, options)


def _engine(cpu: bool) -> Iterator[Job]:
    from tengen.bench import engine

    yield "the engine", partial(engine.figures, visits=500, repeats=2)


def _loader(cpu: bool) -> Iterator[Job]:
    from tengen.bench import loader

    yield "the loader", partial(loader.loading, repeats=2)


PARTS = (
    BenchPart("rules", "the rules of every game, next to pgx", (60, 60), _rules),
    BenchPart("search", "search as a share of the bare network", (130, 100), _search),
    BenchPart("loop", "the start and the speed of a run", (130, 60), _loop),
    BenchPart("learning", "samples per second", (50, 30), _learning),
    BenchPart("mctx", "search next to pgx + mctx", (80, 60), _mctx, peer=True),
    BenchPart("program", "Go's GPU program next to the plain version", (30, 0), _program),
    BenchPart("engine", "an engine as a share of the bare network", (0, 60), _engine),
    BenchPart("loader", "rows per second from files", (20, 30), _loader),
)


def find(name: str) -> BenchPart:
    return next(part for part in PARTS if part.name == name)


def derived(figures: Iterable[Figure]) -> Iterator[Figure]:
    """Figures that need those of several parts: the running loop as a share of the bare network."""
    known = {figure.name: figure for figure in figures}
    loop, play = known.get("evaluations of `tengen run go9`"), known.get("share of playing in `tengen run go9`")
    bare = known.get("bare network, go 9x9 b6c96 4096 games gumbel 128")
    if loop and bare:
        noise = loop.noise + bare.noise
        yield Figure("`tengen run go9` / bare network", loop.value / bare.value, RATIO, noise)
        if play:
            share = loop.value / play.value / bare.value
            yield Figure("`tengen run go9` while playing / bare network", share, RATIO, noise)


def seconds_left(left: float, part: BenchPart, later: Iterable[BenchPart], machine: Machine) -> float:
    """The time of a part: its share of what is left, so that later ones get what earlier ones did not need."""
    rest = sum(other.share(machine) for other in later)
    return left * part.share(machine) / (part.share(machine) + rest)
