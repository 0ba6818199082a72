"""`tengen play`: a person against a network, on a board of text."""

import argparse
import random
import sys

from tengen.commands.config import add_overrides
from tengen.commands.thinking import add_thinking, engine_settings, play_settings

HELP = "play against a network"
ABOUT = """Play against a network. NET is a network's folder or a run, whose newest accepted network is meant. Moves
are typed by their names; help says what else can be typed."""
EXAMPLE = "tengen play runs/tic_tac_toe --as second --visits 100"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    add_thinking(parser)
    parser.add_argument(
        "--as", dest="seat", choices=("first", "second", "random"), default="first", help="who you are (default first)"
    )
    add_overrides(parser, "another option of the game than the network was trained with, such as size=7", "KEY=VALUE")
    parser.add_argument("--seed", type=int, help="for games that begin by chance, and for --as random")


def run(args: argparse.Namespace) -> int:
    """Play until the user quits."""
    play, engine = play_settings(args), engine_settings(args)
    chosen = random.Random(args.seed).randrange(2) if args.seat == "random" else ("first", "second").index(args.seat)

    from tengen.analysis import query
    from tengen.engine.console import Console
    from tengen.engine.engine import Engine
    from tengen.jax_setup import keep_compiled
    from tengen.match.player_spec import find_network

    keep_compiled()
    found = find_network(args.net)
    made = Engine(found, query.new_game(found.saved, query.parse_options(args.overrides)).game, engine)
    print("One moment: compiling for this network ...", file=sys.stderr, flush=True)
    made.warm_up()
    Console(made, play, chosen, seed=args.seed).run()
    return 0
