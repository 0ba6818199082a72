"""How strong Tengen should be, one command per goal: train from nothing, play the match, say whether it is reached.

    python benchmarks/goals.py                                                    # the list of goals
    python benchmarks/goals.py go9 --opponent nets/g170 --seeds 1 2               # an imported network of KataGo
    python benchmarks/goals.py go9 --opponent "gtp:katago gtp -model M -config C" # or the real engine
    python benchmarks/goals.py laptop --dry-run                                   # only the commands
    python benchmarks/goals.py connect_four --set search.simulations=16

Runs and matches are kept in --folder, and the same command goes on where it was stopped. All but `laptop` want a GPU.
`--set` tries other settings, in runs of their own.
`tengen import katago FILE nets/g170 --size 9` imports a network of KataGo.
"""

import argparse
import json
import math
import re
import shlex
import subprocess
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tengen.run import networks

HERE = Path(__file__).parent
GNU_GO = "gtp:gnugo --mode gtp --level 10"


@dataclass(frozen=True)
class Goal:
    """A row of the table: what is trained for how long, and what is asked of it then."""

    about: str
    config: str
    minutes: float
    settings: tuple[str, ...] = ()
    opponent: str | None = None  # None: it must be named; empty: no match
    games: int = 400
    share: float = 0.0  # of the points of the match
    simulations: int = 64


GOALS = {
    "go9": Goal("9x9 Go, ten minutes, against KataGo's g170-b6c96", "go9", 10.0, share=0.80),
    "go9_long": Goal("9x9 Go, thirty minutes, against the same", "go9", 30.0, share=0.95),
    "curve": Goal("9x9 Go, thirty minutes: the rating rises to the end", "go9", 30.0, opponent=""),
    "seeds": Goal("9x9 Go, ten minutes: two seeds within 60 Elo", "go9", 10.0, opponent=""),
    "connect_four": Goal(
        "connect four, five minutes: perfect moves",
        "connect_four_gpu",
        5.0,
        ("rating.references=[]", "rating.earlier=0"),
        "",
    ),
    "laptop": Goal("connect four on two cores, nine minutes", "connect_four", 9.0, (), "mcts:200", 100, 0.95, 32),
    "go19": Goal("19x19 Go, one hour, against GNU Go level 10", "go19", 60.0, ("net.name=b10c128",), GNU_GO, 40, 0.50),
}
CLOSE = 60.0  # Elo
MORE_THAN_HALF = 0.5 + 1e-6
PERFECT = (99.5, 99.9)  # percent of the moves, by the policy alone and with 64 simulations


class Commands:
    """Runs commands, or only prints them."""

    def __init__(self, dry: bool) -> None:
        self.dry = dry

    def run(self, *words: object) -> bool:
        """Whether it succeeded."""
        texts = [str(word) for word in words]
        print(f"$ {shlex.join(texts)}", flush=True)
        return self.dry or subprocess.run(texts, check=False).returncode == 0

    def tengen(self, *words: object) -> bool:
        return self.run(sys.executable, "-m", "tengen", *words)

    def perfect(self, run: Path) -> tuple[float, ...] | None:
        """Percentages of perfect moves in connect four: by the policy alone, and with simulations."""
        words = [sys.executable, str(HERE / "connect_four_perfect.py"), "measure", str(run)]
        print(f"$ {shlex.join(words)}", flush=True)
        if self.dry:
            return None
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        print(done.stdout, done.stderr, flush=True)
        line = next((line for line in done.stdout.splitlines() if line.startswith("all positions")), "")
        return tuple(float(share) for share in re.findall(r"([\d.]+) %", line)) or None

    def share(self, one: Path, other: str | Path, goal: Goal, out: Path, seed: int) -> float | None:
        """The share of the points that `one` wins; None if there was no match."""
        result = out.with_suffix(".json")
        words = ["--games", goal.games, "--simulations", goal.simulations, "--seed", seed, "--out", out]
        if not self.tengen("match", one, other, *words, "--set", "search.algorithm=puct", "--json", result) or self.dry:
            return None
        return float(json.loads(result.read_text())["share"])


def measure(
    name: str,
    goal: Goal,
    seeds: Sequence[int],
    opponent: str | None,
    folder: Path,
    commands: Commands,
    settings: Sequence[str] = (),
) -> int:
    """All seeds of a goal; 0 if it is reached by each. `settings` are those of the runs besides the goal's own."""
    tried = f"-{zlib.crc32(' '.join(sorted(settings)).encode()):08x}" if settings else ""
    runs = {seed: folder / f"{goal.config}-{goal.minutes:g}{tried}-s{seed}" for seed in seeds}
    for seed, run in runs.items():
        new = [word for setting in (*goal.settings, *settings, f"run.seed={seed}") for word in ("--set", setting)]
        words = [run] if (run / "config.yaml").exists() else [goal.config, "--base", run, *new]
        if not commands.tengen("run", *words, "--set", f"goal.minutes={goal.minutes:g}"):
            return 1
    matches = folder / "matches"
    if name == "seeds":
        one, other = list(runs.values())[:2]
        share = commands.share(one, other, goal, matches / f"{one.name}-{other.name}", 0)
        apart = None if share is None else abs(400 * math.log10(max(share, 1e-9) / max(1 - share, 1e-9)))
        words = f"the two seeds are {apart} Elo apart, the goal is at most {CLOSE:.0f}"
        return 0 if _verdict(words, None if apart is None else -apart, -CLOSE, commands) else 1
    good = True
    for seed, run in runs.items():
        if name == "connect_four":
            found, wanted, words = commands.perfect(run), PERFECT, "percent of the moves are perfect"
        elif name == "curve":
            last, earlier = _last_and_earlier(run)
            found, wanted = commands.share(last, earlier, goal, matches / f"{run.name}-curve", seed), MORE_THAN_HALF
            words = "of the last network against that at two thirds of the time"
        else:
            against = re.sub(r"[^A-Za-z0-9]+", "_", str(opponent))[-40:]
            found = commands.share(run, str(opponent), goal, matches / f"{run.name}-{against}", seed)
            wanted, words = goal.share, f"against {opponent}"
        good &= _verdict(f"seed {seed}: {found} {words}, the goal is {wanted}", found, wanted, commands)
    return 0 if good else 1


def _last_and_earlier(run: Path) -> tuple[Path, Path]:
    """The last network of a run, and the one that was saved at about two thirds of its time."""
    saved = [network.path for network in networks.usable(run)] or [run / "EARLIER", run / "LAST"]
    return saved[-1], saved[max((2 * len(saved)) // 3 - 1, 0)]


def _verdict(words: str, found: Any, wanted: Any, commands: Commands) -> bool:
    """Say whether what was found is at least what is wanted; None: nothing was."""
    if commands.dry:
        return True
    reached = found is not None and bool(np.all(np.asarray(found) >= np.asarray(wanted)))
    print(f"{words}: {'not measured' if found is None else 'reached' if reached else 'not reached'}", flush=True)
    return reached


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("goal", nargs="?", choices=GOALS)
    parser.add_argument("--opponent", help="as for `tengen match`; go9 and go9_long have no other")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--folder", type=Path, default=Path("runs/goals"))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="another setting of the runs")
    parser.add_argument("--dry-run", action="store_true", help="print the commands, and run nothing")
    args = parser.parse_args()
    if args.goal is None:
        print("\n".join(f"{name:13} {goal.about}" for name, goal in GOALS.items()))
        return 0
    goal = GOALS[args.goal]
    opponent = goal.opponent if args.opponent is None else args.opponent
    if opponent is None:
        parser.error(f"{args.goal}: name the opponent with --opponent, as nets/g170 (`tengen import katago`)")
    if args.goal == "seeds" and len(args.seeds) < 2:
        parser.error("seeds: expected two seeds")
    return measure(args.goal, goal, args.seeds, opponent, args.folder, Commands(args.dry_run), args.set)


if __name__ == "__main__":
    sys.exit(main())
