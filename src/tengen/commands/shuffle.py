"""`tengen shuffle`: the newest rows in random order, as a part of a run."""

import argparse
import functools
from collections.abc import Sequence
from typing import Any

from tengen.commands.arguments import Arg, Namespace
from tengen.commands.part import drive, look, part_arguments
from tengen.errors import TengenError

HELP = "a part of a run: put its newest rows in random order"
ABOUT = """Draw from the newest rows of a run and put them in random order, for trainers: again whenever enough new
rows have come. Ends with Ctrl-C. The newest rows are the window: all rows up to data.window.min_rows, later a number
that grows ever more slowly with the rows of the run. `tengen shuffle RUN --help` ends with the numbers of that run."""
EXAMPLE = "tengen shuffle go9 --base runs/go9 --dry-run"


class WindowHelp(argparse.Action):
    """The help; after the directory of a run also its window, in numbers."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        about = "show this help, with the window of the run if CONFIG comes before it, and exit"
        super().__init__(option_strings, dest, nargs=0, help=about)

    def __call__(self, parser: argparse.ArgumentParser, args: Namespace, *_: Any) -> None:
        parser.print_help()
        if args.config:
            try:
                print(f"\n{_build(*look(args)).explain()}")
            except TengenError as error:
                print(f"\nno window to explain: {error}")
        parser.exit()


HELP_ACTION = WindowHelp
ARGUMENTS = (
    *part_arguments("make one shuffle, however few rows are new, and end"),
    Arg("--dry-run", "only say what it would read, write and need"),
)


def run(args: Namespace) -> int:
    if args.dry_run:
        print(_build(*look(args)).plan())
        return 0
    return drive(args, functools.partial(_build, single=args.once), computes=False)


def _build(config: Any, base: Any, stop: Any = lambda: False, say: Any = print, *, single: bool = False) -> Any:
    from tengen.loop.parts.shuffle import ShufflePart

    return ShufflePart(config, config.game.make(), base, stop, say, single=single)
