"""`tengen gate`: tests candidates against the newest accepted network."""

from typing import Any

from tengen.commands.arguments import Arg, Namespace
from tengen.commands.part import drive, load, part_arguments, say

HELP = "a part of a run: play new networks against the newest accepted one"
ABOUT = """Plays exported networks against the newest accepted one, and accepts those that pass. Only one gate works
on a run. Ends with Ctrl-C."""
EXAMPLE = "tengen gate go9 --base runs/go9"
ARGUMENTS = (
    *part_arguments("judge what waits, and end"),
    Arg("--quit-if-nothing-to-test", "the same, and say so if nothing waits"),
)


def run(args: Namespace) -> int:
    if args.quit_if_nothing_to_test:
        from tengen.run import networks

        args.once = True
        if not networks.candidates(load(args)[1]):
            say("nothing to test")
            return 0

    def build(*context: Any) -> Any:
        from tengen.loop.parts.gate import GatePart

        return GatePart(*context)

    return drive(args, build, only="gate", free=("net", "train"))
