"""`tengen report`: runs as one HTML file to look at."""

import argparse
from pathlib import Path

from tengen.commands.numbers import whole

HELP = "write runs as a page to look at in a browser"
ABOUT = """Writes one HTML file with the curves, ratings, games, data and settings of runs, several of them over each
other. It needs no network and no server: open it from the disk, or send it to somebody. RUN is a run's folder, a folder
of runs, or the folder of a match."""
EXAMPLE = "tengen report runs/connect_four --out report.html"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="a run's folder, a folder of runs, or a match"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file (default: report.html in the first RUN)")
    parser.add_argument(
        "--games", type=whole(0, 1000), metavar="N", default=36, help="games to include (default %(default)s; 0: none)"
    )


def run(args: argparse.Namespace) -> int:
    """Write the report."""
    from tengen.web import report

    print(report.write(args.out or args.runs[0] / report.NAME, args.runs, args.games))
    return 0
