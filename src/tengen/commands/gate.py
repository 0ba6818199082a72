"""`tengen gate`: tests candidates against the newest accepted network."""

import argparse
from typing import Any

from tengen.commands.part import add_part, drive, load, say

HELP = "a part of a run: play new networks against the newest accepted one"
ABOUT = """Plays exported networks against the newest accepted one, and accepts those that pass. Only one gate works
on a run. Ends with Ctrl-C."""
EXAMPLE = "tengen gate go9 --base runs/go9"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    add_part(parser, "judge what waits, and end")
    parser.add_argument("--quit-if-nothing-to-test", action="store_true", help="the same, and say so if nothing waits")


def run(args: argparse.Namespace) -> int:
    """Judges candidates until Ctrl-C."""
    if args.quit_if_nothing_to_test:
        from tengen.run import networks

        args.once = True
        if not networks.candidates(load(args)[1]):
            say("nothing to test")
            return 0

    def build(config: Any, base: Any, stop: Any, say: Any) -> Any:
        from tengen.loop.parts.gate import GatePart

        return GatePart(config, base, stop, say)

    return drive(args, build, only="gate", free=("net", "train"))
