"""`tengen run`: from random play to a strong network."""

import argparse
import datetime
import signal
from pathlib import Path
from typing import Any

from tengen import config as configuration
from tengen.commands.config import add_config


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("run", help="self-play and learning, from nothing or from where a run stopped")
    add_config(parser)
    parser.add_argument("--base", type=Path, metavar="RUN", help="the run directory (default: runs/<name of the run>)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run until the goal is reached, or until Ctrl-C."""
    config = configuration.load(args.config, args.overrides)
    base = args.base or Path("runs") / config.run.name

    from tengen.config import provenance, run_directory

    run_directory.write(config, base, provenance.lines())

    from tengen.commands.compiling import keep_compiled
    from tengen.loop.fused import Fused
    from tengen.loop.progress import display

    keep_compiled()
    stopping = _Stopping()
    with display() as shown:
        stopping.say = shown.say
        loop = Fused(config, base, shown)
        loop.prepare()
        with stopping:
            loop.run(lambda: stopping.asked)
    print(_summary(loop, args, base, stopping.asked))
    return 130 if stopping.asked else 0


class _Stopping:
    """Ctrl-C asks the run to end when it can; a second one ends it at once."""

    def __init__(self) -> None:
        self.asked = False
        self.say: Any = print

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGINT, self._ask)

    def __exit__(self, *exception: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _ask(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self.say("stopping: everything is being written (Ctrl-C again stops at once)")


def _summary(loop: Any, args: argparse.Namespace, base: Path, stopped: bool) -> str:
    took = datetime.timedelta(seconds=round(loop.counts.seconds))
    lines = [f"{took}: {loop.counts.games:,} games, {loop.counts.rows:,} rows, {loop.trainer.step:,} steps"]
    ratings = loop.rater.ratings
    if ratings is not None:
        lines.append(str(ratings))
    if loop.network_path is not None:
        lines.append(f"network: {loop.network_path}")
    lines.append(f"go on:   tengen run {args.config} --base {base}" + ("" if stopped else " --set goal.minutes=..."))
    return "\n".join(lines)
