"""The rating curve of a run: matches between its saved networks, neighbours and neighbours' neighbours, on one scale.

    python benchmarks/curve.py RUN/models/* --games 128 --simulations 32

The first of the networks, by samples, is 0.
"""

import argparse
import sys
from itertools import combinations
from pathlib import Path

import jax

from tengen import games, match
from tengen.config.settings.match import MatchSettings
from tengen.config.settings.search import SearchSettings
from tengen.errors import TengenError
from tengen.match import players
from tengen.nets import saving


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("nets", type=Path, nargs="+")
    parser.add_argument("--games", type=int, default=128)
    parser.add_argument("--simulations", type=int, default=32)
    parser.add_argument("--apart", type=int, default=2, help="how far apart two networks are that play, at most")
    parser.add_argument("--opening-moves", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    try:
        known = sorted(((saving.read(path), path) for path in args.nets), key=lambda item: item[0].info["samples"])
        game = games.make(known[0][0].game, **known[0][0].options)
        settings = players.strongest(SearchSettings(algorithm="gumbel"), args.simulations)
        entered = [players.saved(path.name, path, game, settings, "bfloat16") for _, path in known]
        results = []
        for (i, one), (j, other) in combinations(enumerate(entered), 2):
            if j - i <= args.apart:
                key = jax.random.fold_in(jax.random.key(args.seed), i * len(entered) + j)
                played = match.play(game, other, one, key, MatchSettings(args.games, args.opening_moves))
                print(played, flush=True)
                results.append(played.result)
        print(match.fit(results, entered[0].name))
    except (TengenError, KeyError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
