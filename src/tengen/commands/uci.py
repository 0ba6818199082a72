"""`tengen uci`: a network for chess programs."""

import argparse
from typing import Any

from tengen.commands.thinking import add_thinking, engine_settings, play_settings

_ABOUT = """Answer UCI commands on the standard input, for chess programs such as Cute Chess, Arena or Lichess bots.
NET is a network for chess: its folder, or a run, whose newest accepted network is meant."""


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "uci",
        help="play for chess programs, which speak UCI",
        description=_ABOUT,
        example="tengen uci runs/chess --seconds 5",
    )
    add_thinking(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Answer until `quit` or the end of the input."""
    play, engine = play_settings(args), engine_settings(args)

    from tengen.engine.uci import session
    from tengen.jax_setup import keep_compiled

    keep_compiled()
    session.serve(args.net, play, engine)
    return 0
