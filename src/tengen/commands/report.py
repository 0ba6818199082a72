"""`tengen report`: runs as one HTML file to look at."""

import argparse
from pathlib import Path
from typing import Any

from tengen.commands.numbers import whole

_ABOUT = """Writes one HTML file with the curves, ratings, games, data and settings of runs, several of them over each
other. It needs no network and no server: open it from the disk, or send it to somebody. RUN is a run's folder, a folder
of runs, or the folder of a match."""


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "report",
        help="write runs as a page to look at in a browser",
        description=_ABOUT,
        example="tengen report runs/connect_four --out report.html",
    )
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="a run's folder, a folder of runs, or a match"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file (default: report.html in the first RUN)")
    parser.add_argument(
        "--games", type=whole(0, 1000), metavar="N", default=36, help="games to include (default %(default)s; 0: none)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the report."""
    from tengen.web import report

    print(report.write(args.out or args.runs[0] / report.NAME, args.runs, args.games))
    return 0
