"""`tengen export`: networks from what trainers leave, as a part of a run."""

import argparse
from typing import Any

from tengen.commands.part import add_part, drive

_ABOUT = """Turn what trainers leave into networks: for the gate, or aside for trainers whose networks do not play.
Ends with Ctrl-C."""


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "export",
        help="a part of a run: turn what trainers leave into networks",
        description=_ABOUT,
        example="tengen export go9 --base runs/go9",
    )
    add_part(parser, "export what waits, and end")
    parser.add_argument("--name", help="of one trainer (default: all of them)")
    parser.add_argument(
        "--now",
        action="store_true",
        help="export the newest checkpoint of the trainer (main unless named), also in mid-epoch, and end",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Export whatever comes, until Ctrl-C."""
    from tengen.run.locks import check_name

    name = None if args.name is None else check_name(args.name)
    args.once = args.once or args.now

    def build(config: Any, base: Any, stop: Any, say: Any) -> Any:
        from tengen.loop.parts.export import ExportPart, leave_checkpoint

        if args.now:
            leave_checkpoint(base, name or "main")
        return ExportPart(config, base, stop, say, name=name)

    return drive(args, build, free=("net", "train"))
