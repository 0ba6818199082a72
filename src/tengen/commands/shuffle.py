"""`tengen shuffle`: the newest rows in random order, as a part of a run."""

import argparse
from typing import Any

from tengen.commands.part import add_part, drive, look

HELP = "a part of a run: put its newest rows in random order"
ABOUT = """Draw from the newest rows of a run and put them in random order, for trainers: again whenever enough new
rows have come. Ends with Ctrl-C. The newest rows are the window: all rows up to data.window.min_rows, later a number
that grows ever more slowly with the rows of the run. --explain shows it with the numbers of a run."""
EXAMPLE = "tengen shuffle go9 --base runs/go9 --dry-run"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    add_part(parser, "make one shuffle, however few rows are new, and end")
    parser.add_argument("--dry-run", action="store_true", help="only say what it would read, write and need")
    parser.add_argument(
        "--explain", action="store_true", help="only explain the window, with the numbers of this run and their growth"
    )


def run(args: argparse.Namespace) -> int:
    """Shuffle whenever there are enough new rows, until Ctrl-C."""

    def build(config: Any, base: Any, stop: Any, say: Any) -> Any:

        from tengen.loop.parts.shuffle import ShufflePart

        game = config.game.make()
        return ShufflePart(config, game, base, stop, say, single=args.once)

    if args.dry_run or args.explain:
        config, base = look(args)
        part = build(config, base, lambda: False, print)
        print(part.explain() if args.explain else part.plan())
        return 0
    return drive(args, build, computes=False)
