"""`tengen run`: from random play to a strong network."""

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from tengen import config as configuration
from tengen.commands.config import add_config


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("run", help="self-play and learning, from nothing or from where a run stopped")
    add_config(parser)
    parser.add_argument("--base", type=Path, metavar="RUN", help="the run directory (default: runs/<name of the run>)")
    parser.add_argument("--tensorboard", action="store_true", help="also write TensorBoard files, to RUN/logs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run until the goal is reached, or until Ctrl-C."""
    config = configuration.load(args.config, args.overrides)
    base = args.base or Path("runs") / config.run.name

    from tengen.config import provenance, run_directory

    with run_directory.locked(base):
        run_directory.write(config, base, provenance.lines())
        return _run(args, config, base)


def _run(args: argparse.Namespace, config: configuration.Config, base: Path) -> int:
    from tengen.commands.compiling import explaining_memory, keep_compiled
    from tengen.commands.stopping import Stopping
    from tengen.loop import summary
    from tengen.loop.fused import Fused
    from tengen.loop.progress import display

    keep_compiled()
    with (
        display() as shown,
        Stopping(shown.say) as stopping,
        explaining_memory(),
        Fused(config, base, shown, tensorboard=args.tensorboard) as loop,
    ):
        loop.prepare()
        if loop.reason:
            shown.say(f"nothing to do: {loop.reason}")
        loop.run(lambda: stopping.asked)
    reason = f"stopped by {stopping.words}" if stopping.asked else loop.reason
    told = _summary(loop, reason, _commands(args, base, loop, stopping.asked))
    print("\n" + summary.render(told, encoding=sys.stdout.encoding if sys.stdout else None))
    return stopping.code


def _summary(loop: Any, reason: str, commands: dict[str, str]) -> Any:
    from tengen.loop.reporting import losses
    from tengen.loop.summary import Summary

    ratings, parts = loop.rater.ratings, losses(loop.figures)
    return Summary(
        name=loop.config.run.name,
        elapsed=loop.counts.seconds,
        games=loop.counts.games,
        rows=loop.counts.rows,
        steps=loop.trainer.step,
        reason=reason,
        loss=parts.pop("loss", None),
        losses=parts,
        table="" if ratings is None else str(ratings),
        curve=loop.rater.curve(),
        network=str(loop.network_path or ""),
        commands=commands,
    )


def _commands(args: argparse.Namespace, base: Path, loop: Any, stopped: bool) -> dict[str, str]:
    """What to type to go on."""
    from tengen.loop.counting import further

    words = ["tengen", "run", args.config, "--base", str(base)]
    longer = {} if stopped else further(loop.config.goal, loop.counts, loop.trainer.step)
    for override in args.overrides:
        if override.partition("=")[0].strip() not in {f"goal.{name}" for name in longer}:
            words += ["--set", override]
    for name, limit in longer.items():
        words += ["--set", f"goal.{name}={limit:g}" if isinstance(limit, float) else f"goal.{name}={limit}"]
    if args.tensorboard:
        words.append("--tensorboard")
    return {"train further" if longer else "go on": shlex.join(words)}
