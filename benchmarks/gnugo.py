"""A network against GNU Go: how strong is it really?

    python benchmarks/gnugo.py NET --games 100 --simulations 64 --level 10

This is `tengen match` with the options that make GNU Go (Debian package `gnugo`) play by Tengen's rules: area scoring
with all dead stones taken off, and the same ko rule. Colours alternate; openings are a few random moves per pair.
"""

import argparse
import sys
from pathlib import Path

from tengen.commands import main as tengen
from tengen.errors import TengenError
from tengen.run.networks import find

_KO = {"simple": "--simple-ko", "positional": "--positional-superko", "situational": "--situational-superko"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("net")
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--level", type=int, default=10)
    parser.add_argument("--opening-moves", type=int, default=2)
    parser.add_argument("--algorithm", choices=("puct", "gumbel"), default="puct")
    parser.add_argument("--jobs", type=int, default=2, help="GNU Go processes that think at once: a core for each")
    parser.add_argument("--tables", type=int, default=32, help="games at once, so that the network has full batches")
    parser.add_argument("--out", type=Path, help="where the games go (default: matches/NET-...)")
    args = parser.parse_args()
    try:
        options = find(args.net).saved.options
    except TengenError as error:
        print(error, file=sys.stderr)
        return 1
    rules = ["--chinese-rules", "--capture-all-dead", _KO[options.get("ko", "positional")]]
    if options.get("suicide"):
        rules.append("--allow-suicide")
    words = ["match", args.net, f"gtp:gnugo --mode gtp --level {args.level} {' '.join(rules)}"]
    words += ["--games", args.games, "--simulations", args.simulations, "--opening-moves", args.opening_moves]
    words += ["--parallel", args.jobs, "--tables", args.tables, "--set", f"search.algorithm={args.algorithm}"]
    words += ["--out", args.out] if args.out else []
    return tengen([str(word) for word in words])


if __name__ == "__main__":
    sys.exit(main())
