"""One change at a time on the same budget: short runs that differ in a setting, and matches between what they learned.

    python benchmarks/changes.py train go9 runs/changes/base --seconds 70
    python benchmarks/changes.py train go9 runs/changes/muon --seconds 70 --set train.optimizer.kind=muon
    python benchmarks/changes.py compare runs/changes/base runs/changes/muon --games 400

    python benchmarks/changes.py learn go9 runs/go9 runs/changes/large --steps 15000 --set net.name=b6c128

    python benchmarks/changes.py decide go9 runs/points --seconds 140 --seeds 11 12 13 \\
        --change w4 search.score_weight=0.4 --change w2 search.score_weight=0.2 \\
        --opponent base --opponent "gtp:gnugo --mode gtp --level 10" --opponent "gtp:katago gtp -model M -config C"

`learn` trains a network from nothing on the rows that another run has kept, and judges it on the newest of them, which
it does not learn from: minutes decide about losses, optimisers and networks, since all see the same games.

`decide` trains the configuration as it is (`base`, with the settings of `--set`) and with each change, for every seed,
plays matches of all of them against the opponents (those of `tengen match`; `base` is the unchanged network of the same
seed), and prints one table with errors over the seeds. The same command goes on where it was stopped, and may have more
seeds, changes, opponents or games. On a CPU, `--at-once 2 --own-cores` trains two runs at a time, each on half of the
cores.

The budget is seconds of playing and learning: what a change costs to compile says nothing about what it is worth. The
first of the compared runs is 0; with `--against N` the first N of them play all others, and nobody else does.
"""

import argparse
import dataclasses
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import jax
import numpy as np

from tengen import config, files, games, match
from tengen.config.settings.match import MatchSettings
from tengen.config.settings.search import SearchSettings
from tengen.cores import cores
from tengen.data.format.identity import GameIdentity
from tengen.data.store.store import Store
from tengen.errors import TengenError
from tengen.jax_setup import keep_compiled
from tengen.loop.components import Components
from tengen.loop.fused import Fused
from tengen.match import players
from tengen.monitor.display import open_display
from tengen.monitor.run_view import RunView
from tengen.nets import saving
from tengen.run import networks
from tengen.run.goals import RunCounts
from tengen.run.part import Stop

BASE = "base"  # the configuration without a change
FIGURES = "figures.json"
COSTS = ("games", "evaluations", "steps", "policy_loss", "value_loss", "score_mean_loss", "ownership_loss")


class Timed(Fused):
    """A run whose clock stands still while something is compiled or matches are played."""

    def _now(self) -> RunCounts:
        session = getattr(self, "session", None)  # there is none until everything is built
        return dataclasses.replace(
            self.counts, seconds=self._playing + session.seconds - self._beside if session else 0.0
        )

    def _learn(self, stop: Stop) -> None:
        self._compiling = 0.0  # by that clock
        super()._learn(stop)


def train(args: argparse.Namespace) -> None:
    """One run, its figures and its network."""
    fixed = [f"goal.minutes={args.seconds / 60}", "rating.minutes=1000", "rating.references=[]", "rating.earlier=0"]
    chosen = config.load(args.config, [*fixed, *args.set])
    args.run.mkdir(parents=True)
    with Timed(chosen, args.run, open_display(RunView())) as run:
        run.prepare()
        run.run(lambda: False)
        counts = run.counts
    if not run.trainer.step:
        raise TengenError(f"{args.run}: {counts.rows:,} rows in {args.seconds:g} seconds, too few to learn from")
    told = {"games": counts.games, "rows": counts.rows, "steps": run.trainer.step, "evaluations": counts.evaluations}
    files.write_bytes(args.run / FIGURES, json.dumps({**run.figures, **told}).encode())
    print(
        f"{args.run.name}: {counts.games:,} games, {counts.rows:,} rows, {run.trainer.step:,} steps, "
        f"{counts.evaluations:,} evaluations, {run.figures}",
        flush=True,
    )


def learn(args: argparse.Namespace) -> None:
    """One network from the rows of another run, and its losses on rows that it has not seen."""
    chosen = config.load(args.config, args.set)
    parts = Components(chosen)
    trainer, identity = parts.trainer, GameIdentity.of(parts.game)
    found = Store(args.data / "selfplay").read_newest(args.rows, parts.form, identity, chosen.data.max_chunk_rows)
    judged = min(args.judged, found.count // 10)
    learned = found.count - judged
    if learned < chosen.train.batch:
        raise TengenError(f"{args.data}: {found.count:,} rows are too few to learn from")
    parts.capacity = learned
    rows = parts.load(parts.make_buffer(), found.rows, learned)
    trainer.config = dataclasses.replace(trainer.config, train=dataclasses.replace(chosen.train, largest_debt=10**12))
    needed = math.ceil(args.steps * chosen.train.batch / chosen.train.samples_per_row) + 1
    trainer.feed((rows, np.int32(learned)), needed)
    rest = {name: values[learned : found.count] for name, values in found.rows.items()}
    seconds, calls, losses = 0.0, 0, {}
    while trainer.step < args.steps:
        trainer.progress, began = trainer.step / args.steps, time.monotonic()
        before, steps = trainer.step, min(args.steps // 50 or 1, args.steps - trainer.step)
        trainer.train(steps)
        if before:  # the first call compiles
            seconds, calls = seconds + time.monotonic() - began, calls + trainer.step - before
        if trainer.step * 5 // args.steps > before * 5 // args.steps:
            losses = {name: round(value, 4) for name, value in trainer.validate([rest]).items()}
            speed = seconds / max(calls, 1)
            print(f"{args.run.name}: step {trainer.step:,}, {1000 * speed:.2f} ms a step, {losses}", flush=True)
    saving.save(
        trainer.network(), args.run, parts.game, {"step": trainer.step, "samples": trainer.samples, "seconds": seconds}
    )
    files.write_bytes(args.run / FIGURES, json.dumps({**losses, "steps": trainer.step, "seconds": seconds}).encode())


def compare(args: argparse.Namespace) -> None:
    """Matches between the newest networks of runs, and ratings."""
    found = [(run.name, networks.find(run)) for run in args.runs]
    game = games.make(found[0][1].saved.game, **found[0][1].saved.options)
    settings = players.strongest(SearchSettings(algorithm="gumbel"), args.simulations)
    entered = [players.saved(name, network.path, game, settings, "bfloat16") for name, network in found]
    results = []
    for (i, one), (j, other) in itertools.combinations(enumerate(entered), 2):
        if args.against is None or i < args.against:
            key = jax.random.fold_in(jax.random.key(args.seed), i * len(entered) + j)
            played = match.play(game, other, one, key, MatchSettings(args.games, args.opening_moves))
            print(played, flush=True)
            results.append(played.result)
    print(match.fit(results, entered[0].name))


class Trial(NamedTuple):
    """A run with one seed."""

    change: str
    seed: int
    settings: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.change}-s{self.seed}"


def decide(args: argparse.Namespace) -> None:
    """All runs, all matches, one table."""
    if BASE in [name for name, *_ in args.change]:
        raise TengenError(f"--change {BASE}: this is the name of the runs without a change")
    changes = {BASE: (), **{name: tuple(settings) for name, *settings in args.change}}
    trials = [Trial(name, seed, settings) for seed in args.seeds for name, settings in changes.items()]
    for name, settings in changes.items():  # a mistake should not be found after an hour
        config.load(args.config, [*args.set, *settings])
        if not re.fullmatch(r"[A-Za-z0-9_]+", name):
            raise TengenError(f"--change {name}: expected a name of letters, digits and _, then KEY=VALUE")
    places: SimpleQueue[Sequence[int]] = SimpleQueue()
    for place in own_cores(args.at_once, cores()) if args.own_cores else [()] * args.at_once:
        places.put(place)
    with ThreadPoolExecutor(args.at_once) as pool:
        for done in [pool.submit(_train_trial, args, trial, places) for trial in trials]:
            done.result()
    for number, opponent in enumerate(args.opponent):
        for trial in trials:
            _match_trial(args, trial, number, opponent)
    print(table(args.folder, trials, args.opponent))


def own_cores(runs: int, all_cores: Sequence[int]) -> list[Sequence[int]]:
    """As many cores for each of the runs that are made at once, none of them shared."""
    if not hasattr(os, "sched_setaffinity"):
        raise TengenError("--own-cores: this system does not let a process choose its cores")
    if runs < 1 or len(all_cores) % runs:
        raise TengenError(f"--at-once {runs}: expected a divisor of the number of cores, {len(all_cores)}")
    return [all_cores[place::runs] for place in range(runs)]


def _train_trial(args: argparse.Namespace, trial: Trial, places: SimpleQueue[Sequence[int]]) -> None:
    """In another process, so that its memory is free afterwards. What an interrupted one left is removed.

    `places` has the cores for each run that may begin now; an empty entry allows all cores.
    """
    run = args.folder / trial.name
    settings = (f"run.seed={trial.seed}", *args.set, *trial.settings)
    machine = [args.at_once] if args.own_cores else []
    wanted, note = json.dumps([args.config, args.seconds, settings, *machine]), run.with_suffix(".made")
    if (run / FIGURES).exists():
        if not note.exists() or note.read_text() != wanted:
            raise TengenError(f"{run} was made with other settings, seconds or cores; use another folder, or remove it")
        return
    shutil.rmtree(run, ignore_errors=True)
    args.folder.mkdir(parents=True, exist_ok=True)
    note.write_text(wanted)
    words = [__file__, "train", args.config, run, "--seconds", args.seconds]
    share = {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{0.9 / args.at_once:.2f}"} if args.at_once > 1 else {}
    place = places.get()
    try:
        if place:
            os.sched_setaffinity(0, place)  # of this thread, and so of the process that it starts
        _python(*words, *(word for setting in settings for word in ("--set", setting)), environment=share)
    finally:
        places.put(place)


def _match_trial(args: argparse.Namespace, trial: Trial, number: int, opponent: str) -> None:
    other = opponent
    if opponent == BASE:
        if trial.change == BASE:
            return
        other = str(networks.find(args.folder / Trial(BASE, trial.seed, ()).name).path)
    words = ["-m", "tengen", "match", networks.find(args.folder / trial.name).path, other]
    words += ["--games", args.games, "--simulations", args.simulations, "--opening-moves", args.opening_moves]
    words += ["--set", f"search.algorithm={args.algorithm}", "--seed", trial.seed, "--parallel", args.jobs]
    words += ["--out", _match_folder(args.folder, trial, opponent), "--json", _result(args.folder, trial, opponent)]
    print(f"{trial.name} against {opponent}, {number + 1} of {len(args.opponent)} opponents", flush=True)
    _python(*words)


def _match_folder(folder: Path, trial: Trial, opponent: str) -> Path:
    slug = re.sub(r"[^A-Za-z0-9]+", "_", opponent)[-40:].strip("_")
    return folder / "matches" / f"{trial.name}-{slug}-{zlib.crc32(opponent.encode()):08x}"


def _result(folder: Path, trial: Trial, opponent: str) -> Path:
    return _match_folder(folder, trial, opponent).with_suffix(".json")


def _python(*words: object, environment: Mapping[str, str] | None = None) -> None:
    done = subprocess.run([sys.executable, *map(str, words)], env={**os.environ, **(environment or {})}, check=False)
    if done.returncode:
        raise TengenError(f"{' '.join(map(str, words[:4]))} failed; the same command goes on after what is done")


def table(folder: Path, trials: Sequence[Trial], opponents: Sequence[str]) -> str:
    """A row for each change: means over the seeds, with the standard errors of these means."""
    changes = list(dict.fromkeys(trial.change for trial in trials))
    lines = ["| | " + " | ".join([*opponents, *COSTS]) + " |", "|---" * (1 + len(opponents) + len(COSTS)) + "|"]
    for change in changes:
        mine = [trial for trial in trials if trial.change == change]
        cells = []
        for opponent in opponents:
            shares = [_share(folder, trial, opponent) for trial in mine]
            bases = [_share(folder, trial._replace(change=BASE), opponent) for trial in mine]
            apart = [a - b for a, b in zip(shares, bases, strict=True) if a is not None and b is not None]
            cell = mean_and_error([share for share in shares if share is not None])
            cells.append(f"{cell} ({mean_and_error(apart)} to base)" if apart and change != BASE else cell)
        figures = [json.loads((folder / trial.name / FIGURES).read_text()) for trial in mine]
        costs = ([one[key] for one in figures if key in one] for key in COSTS)
        lines.append(
            "| " + " | ".join([change, *cells, *(f"{np.mean(cost):.4g}" if cost else "" for cost in costs)]) + " |"
        )
    seeds = len({trial.seed for trial in trials})
    return "\n".join([*lines, f"(percent of the points, mean of {seeds} seeds with its standard error)"])


def mean_and_error(shares: Sequence[float]) -> str:
    """In percent; the error needs two seeds or more."""
    if not shares:
        return ""
    error = f" +- {100 * np.std(shares, ddof=1) / len(shares) ** 0.5:.1f}" if len(shares) > 1 else ""
    return f"{100 * np.mean(shares):.1f}{error}"


def _share(folder: Path, trial: Trial, opponent: str) -> float | None:
    file = _result(folder, trial, opponent)
    return float(json.loads(file.read_text())["share"]) if file.exists() else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("train")
    one.add_argument("config")
    one.add_argument("run", type=Path)
    one.add_argument("--seconds", type=float, default=70.0)
    one.add_argument("--set", action="append", default=[])
    one.set_defaults(do=train)
    offline = commands.add_parser("learn")
    offline.add_argument("config")
    offline.add_argument("data", type=Path, help="the run whose rows are learned from")
    offline.add_argument("run", type=Path, help="a new folder")
    offline.add_argument("--steps", type=int, default=10_000)
    offline.add_argument("--rows", type=int, default=4_000_000, help="the newest are used")
    offline.add_argument("--judged", type=int, default=65_536, help="of these, to judge by")
    offline.add_argument("--set", action="append", default=[])
    offline.set_defaults(do=learn)
    many = commands.add_parser("compare")
    many.add_argument("runs", type=Path, nargs="+")
    many.add_argument("--games", type=int, default=400)
    many.add_argument("--simulations", type=int, default=64)
    many.add_argument("--opening-moves", type=int, default=4)
    many.add_argument("--against", type=int)
    many.add_argument("--seed", type=int, default=0)
    many.set_defaults(do=compare)
    all_of_it = commands.add_parser("decide")
    all_of_it.add_argument("config")
    all_of_it.add_argument("folder", type=Path)
    all_of_it.add_argument("--change", nargs="+", action="append", default=[], metavar=("NAME", "KEY=VALUE"))
    all_of_it.add_argument("--set", action="append", default=[], help="a setting of all runs")
    all_of_it.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13])
    all_of_it.add_argument("--seconds", type=float, default=140.0, help="of playing and learning")
    all_of_it.add_argument("--at-once", type=int, default=1, help="runs at a time on this device")
    all_of_it.add_argument("--own-cores", action="store_true", help="for CPUs: runs at a time share no cores")
    all_of_it.add_argument("--opponent", action="append", default=[], help="as for `tengen match`, or base")
    all_of_it.add_argument("--games", type=int, default=100)
    all_of_it.add_argument("--simulations", type=int, default=64)
    all_of_it.add_argument("--algorithm", choices=("puct", "gumbel"), default="puct")
    all_of_it.add_argument("--opening-moves", type=int, default=2)
    all_of_it.add_argument("--jobs", type=int, default=2, help="processes of an opponent that think at once")
    all_of_it.set_defaults(do=decide)
    args = parser.parse_args()
    keep_compiled()
    try:
        args.do(args)
    except TengenError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
