"""One change at a time on the same budget: short runs that differ in a setting, and matches between what they learned.

    python benchmarks/changes.py train go9 runs/changes/base --seconds 70
    python benchmarks/changes.py train go9 runs/changes/muon --seconds 70 --set train.optimizer.kind=muon
    python benchmarks/changes.py compare runs/changes/base runs/changes/muon --games 400

The budget is seconds of playing and learning: what a change costs to compile says nothing about what it is worth. The
first of the compared runs is 0; with `--against N` the first N of them play all others, and nobody else does.
"""

import argparse
import dataclasses
import itertools
import sys
from pathlib import Path

import jax

from tengen import config, games, match
from tengen.config.settings.match import MatchSettings
from tengen.config.settings.search import SearchSettings
from tengen.errors import TengenError
from tengen.jax_setup import keep_compiled
from tengen.loop.fused import Fused
from tengen.match import players
from tengen.monitor.display import open_display
from tengen.monitor.run_view import RunView
from tengen.run import networks
from tengen.run.counts import RunCounts


class Timed(Fused):
    """A run whose clock stands still while something is compiled or matches are played."""

    def _now(self) -> RunCounts:
        session = getattr(self, "session", None)  # there is none until everything is built
        return dataclasses.replace(self.counts, seconds=self._playing + session.seconds if session else 0.0)


def train(args: argparse.Namespace) -> None:
    """One run, its figures and its network."""
    fixed = [f"goal.minutes={args.seconds / 60}", "rating.minutes=1000", "rating.references=[]", "rating.earlier=0"]
    chosen = config.load(args.config, [*fixed, *args.set])
    args.run.mkdir(parents=True)
    with Timed(chosen, args.run, open_display(RunView())) as run:
        run.prepare()
        run.run(lambda: False)
        counts = run.counts
    print(
        f"{args.run.name}: {counts.games:,} games, {counts.rows:,} rows, {run.trainer.step:,} steps, "
        f"{counts.evaluations:,} evaluations, {run.figures}",
        flush=True,
    )


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("train")
    one.add_argument("config")
    one.add_argument("run", type=Path)
    one.add_argument("--seconds", type=float, default=70.0)
    one.add_argument("--set", action="append", default=[])
    one.set_defaults(do=train)
    many = commands.add_parser("compare")
    many.add_argument("runs", type=Path, nargs="+")
    many.add_argument("--games", type=int, default=400)
    many.add_argument("--simulations", type=int, default=64)
    many.add_argument("--opening-moves", type=int, default=4)
    many.add_argument("--against", type=int)
    many.add_argument("--seed", type=int, default=0)
    many.set_defaults(do=compare)
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
