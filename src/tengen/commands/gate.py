"""`tengen gate`: which of the networks that wait are accepted."""

import argparse
from pathlib import Path
from typing import Any

from tengen import config as configuration
from tengen.commands.config import add_config


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("gate", help="a part of a run: play new networks against the newest accepted one")
    add_config(parser)
    parser.add_argument("--base", type=Path, required=True, metavar="RUN", help="the run directory")
    parser.add_argument("--once", action="store_true", help="judge what waits, then end")
    parser.add_argument("--quit-if-nothing-to-test", action="store_true", help="the same, and say so if nothing waits")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Judge candidates until Ctrl-C."""
    config = configuration.load(args.config, args.overrides)

    from tengen.config import provenance, run_directory
    from tengen.loop.ring import locks

    with locks.taking_part(args.base, "gate"):
        run_directory.write(config, args.base, provenance.lines())
        return _run(args, config)


def _run(args: argparse.Namespace, config: configuration.Config) -> int:
    from tengen.commands.compiling import explaining_memory, keep_compiled
    from tengen.commands.stopping import Stopping
    from tengen.loop.ring import models, running
    from tengen.loop.ring.gating import GatePart
    from tengen.loop.ring.notices import Notice

    if args.quit_if_nothing_to_test and not models.candidates(args.base):
        _say("nothing to test")
        return 0
    keep_compiled()
    with (
        Stopping(_say) as stopping,
        explaining_memory(),
        Notice(args.base, GatePart.kind, GatePart.name) as notice,
        running.closing(GatePart(config, args.base, lambda: stopping.asked, _say)) as part,
    ):
        once = args.once or args.quit_if_nothing_to_test
        running.run(part, notice, lambda: stopping.asked, _say, config.ring.poll_seconds, once=once)
    return stopping.code


def _say(text: str) -> None:
    print(text, flush=True)
