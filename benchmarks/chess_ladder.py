"""A chess network against a ladder of Stockfish with fixed nodes a move: a table and a chart with error bars.

    python benchmarks/chess_ladder.py RUN --stockfish /usr/games/stockfish --simulations 64 800

Every rung is a `tengen match` (DIR/s64-n100 and so on), so that Ctrl-C loses nothing and the same command goes on. With
several `--simulations`, each has its curve. DIR/ladder.md has the table, DIR/ladder.svg the chart.
"""

import argparse
import math
import sys
from pathlib import Path

from tengen import files
from tengen.analysis.drawing import Chart, titled
from tengen.commands import main as tengen
from tengen.match import results
from tengen.match.results import MatchResult

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e")
Ladder = dict[int, dict[int, MatchResult]]
"""Simulations -> nodes -> the match."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("net", help="a run or a network")
    parser.add_argument("--stockfish", default="stockfish", help="the program (%(default)s)")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 10, 100, 1000], help="the rungs")
    parser.add_argument("--simulations", type=int, nargs="+", default=[64], help="per move of the network")
    parser.add_argument("--games", type=int, default=100, help="on each rung (%(default)s)")
    parser.add_argument("--opening-moves", type=int, default=4)
    parser.add_argument(
        "--tables", type=int, default=64, help="games at once; the network has half of them (%(default)s)"
    )
    parser.add_argument("--parallel", type=int, help="Stockfish processes that think at once (default: one per core)")
    parser.add_argument("--out", type=Path, default=Path("ladder"), metavar="DIR")
    args = parser.parse_args()
    ladder: Ladder = {}
    for simulations in args.simulations:
        for nodes in args.nodes:
            folder = args.out / f"s{simulations}-n{nodes}"
            words = ["match", args.net, f"uci@{nodes}:{args.stockfish}", "--games", args.games, "--out", folder]
            words += ["--simulations", simulations, "--opening-moves", args.opening_moves, "--tables", args.tables]
            words += ["--uci-option", "Threads=1", "--uci-option", "Hash=16"]
            words += ["--parallel", args.parallel] if args.parallel else []
            if code := tengen([str(word) for word in words]):
                return code
            (ladder.setdefault(simulations, {})[nodes],) = results.read(folder / "results.jsonl")
            write(args.out, args.net, ladder)  # what is known so far
    print("\n".join(table(ladder)))
    print(f"{args.out / 'ladder.md'}, {args.out / 'ladder.svg'}")
    return 0


def table(ladder: Ladder) -> list[str]:
    """In Markdown; intervals contain the true number with 95 % certainty."""
    lines = ["| simulations | Stockfish's nodes | games | score | 95 % | Elo | 95 % |", "|---|---|---|---|---|---|---|"]
    for simulations, rungs in ladder.items():
        for nodes, match in rungs.items():
            (low, high), (least, most) = match.interval, match.elo_interval
            elo = f"{match.elo:+.0f} | {least:+.0f} to {most:+.0f}"
            lines.append(
                f"| {simulations} | {nodes:,} | {match.games} ({match.counts}) | {match.share:.1%} | "
                f"{low:.1%} to {high:.1%} | {elo} |"
            )
    return lines


def write(out: Path, net: str, ladder: Ladder) -> None:
    """The table and the chart."""
    files.write_bytes(out / "ladder.md", ("\n".join(table(ladder)) + "\n").encode())
    files.write_bytes(out / "ladder.svg", draw(net, ladder).encode())


def draw(net: str, ladder: Ladder) -> str:
    """The share of the points by Stockfish's nodes, with bars for 95 %."""
    rungs = sorted({nodes for matches in ladder.values() for nodes in matches})
    ends = math.log10(rungs[0]), math.log10(rungs[-1])
    drawing = titled(760, 440, f"{net} against Stockfish with fixed nodes a move")
    chart = Chart(drawing, (80, 60, 580, 380), (ends[0] - 0.25, ends[1] + 0.25), (0.0, 1.0))
    levels = {share / 10: f"{10 * share} %" for share in range(0, 11, 2)}
    chart.axes("Stockfish's nodes a move", "score", {math.log10(n): f"{n:,}" for n in rungs}, levels)
    for number, (simulations, matches) in enumerate(ladder.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [(math.log10(nodes) + 0.02 * number, match) for nodes, match in sorted(matches.items())]
        chart.line([(x, match.share) for x, match in places], colour)
        for x, match in places:
            chart.line([(x, bound) for bound in match.interval], colour, kind="error")
            chart.point(x, match.share, 4, colour)
        chart.legend(number, f"{simulations} simulations", colour)
    return drawing.to_text()


if __name__ == "__main__":
    sys.exit(main())
