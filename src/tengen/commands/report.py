"""`tengen report`: runs as one HTML file to look at."""

from pathlib import Path

from tengen.commands.arguments import Arg, Namespace, whole
from tengen.errors import TengenError

HELP = "write runs as a page to look at in a browser"
ABOUT = """Writes one HTML file with the curves, ratings, games, data and settings of runs, several of them over each
other. It needs no network and no server: open it from the disk, or send it to somebody. RUN is a run's folder, a folder
of runs, or the folder of a match."""
EXAMPLE = "tengen report runs/connect_four --out report.html"
ARGUMENTS = (
    Arg("RUN+", "a run's folder, a folder of runs, or a match", Path, dest="runs"),
    Arg("--out FILE", "the file (default: report.html in the first RUN)", Path),
    Arg("--games N", "games to include (default %(default)s; 0: none)", whole(0, 1000), 36),
)


def run(args: Namespace) -> None:
    if args.out is not None and args.out.suffix.lower() not in (".html", ".htm"):
        raise TengenError(f"--out {args.out}: expected a name that ends in .html")
    from tengen.web import report

    print(report.write(args.out or args.runs[0] / report.NAME, args.runs, args.games))
