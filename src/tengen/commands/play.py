"""`tengen play`: a person against a network, on a board of text."""

import random
import sys

from tengen.commands.arguments import Arg, Namespace, engine_settings, net_arguments, overrides, play_settings

HELP = "play against a network"
ABOUT = """Play against a network. NET is a network's folder or a run, whose newest accepted network is meant. Moves
are typed by their names; help says what else can be typed."""
EXAMPLE = "tengen play runs/tic_tac_toe --as second --visits 100"
ARGUMENTS = (
    *net_arguments(),
    Arg("--as", "who you are (default first)", default="first", choices=("first", "second", "random"), dest="seat"),
    overrides("another option of the game than the network was trained with, such as size=7", "KEY=VALUE"),
    Arg("--seed SEED", "for games that begin by chance, and for --as random", int),
)


def run(args: Namespace) -> None:
    play, engine = play_settings(args), engine_settings(args)
    chosen = random.Random(args.seed).randrange(2) if args.seat == "random" else ("first", "second").index(args.seat)

    from tengen.analysis import query
    from tengen.engine.console import Console
    from tengen.engine.engine import Engine
    from tengen.jax_setup import keep_compiled
    from tengen.run.networks import find_network

    keep_compiled()
    found = find_network(args.net)
    made = Engine(found, query.new_game(found.saved, query.parse_options(args.overrides)).game, engine)
    print("One moment: compiling for this network ...", file=sys.stderr, flush=True)
    made.warm_up()
    Console(made, play, chosen, seed=args.seed).run()
