"""A saved network against fixed references: how good is it after a run?

    python benchmarks/strength.py RUN/models/NET random mcts:200 --games 100 --simulations 32
    python benchmarks/strength.py RUN/models/NET --perfect              # tic-tac-toe: can any line of play beat it?

Colours are swapped in pairs, and each pair begins with a few random moves of its own. Other references are networks of
the same game: their folders.
"""

import argparse
import sys

import jax

from tengen import games, match
from tengen.config.settings.match import MatchSettings
from tengen.config.settings.search import SearchSettings
from tengen.errors import TengenError
from tengen.match import player_spec, players
from tengen.run import networks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("net")
    parser.add_argument("references", nargs="*", default=[])
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--simulations", type=int, default=32)
    parser.add_argument("--algorithm", choices=("puct", "gumbel"), default="gumbel")
    parser.add_argument("--opening-moves", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--perfect", action="store_true", help="try all lines of play against it; small games only")
    args = parser.parse_args()
    try:
        found = networks.find(args.net)
        game = games.make(found.saved.game, **found.saved.options)
        search = players.strongest(SearchSettings(algorithm=args.algorithm), args.simulations)
        player = players.saved(found.name, found.path, game, search)
        settings = MatchSettings(games=args.games, opening_moves=args.opening_moves)
        for number, name in enumerate(args.references):
            other = player_spec.parse(name).player(game, search)
            key = jax.random.fold_in(jax.random.key(args.seed), number)
            print(match.play(game, player, other, key, settings), flush=True)
        if args.perfect:
            unbeaten = match.never_loses(game, player)
            print("no line of play beats it" if unbeaten else "there are lines of play that beat it")
    except TengenError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
