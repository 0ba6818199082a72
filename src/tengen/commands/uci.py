"""`tengen uci`: a network for chess programs."""

from tengen.commands.arguments import Namespace, engine_settings, net_arguments, play_settings

HELP = "play for chess programs, which speak UCI"
ABOUT = """Answer UCI commands on the standard input, for chess programs such as Cute Chess, Arena or Lichess bots.
NET is a network for chess: its folder, or a run, whose newest accepted network is meant."""
EXAMPLE = "tengen uci runs/chess --seconds 5"
ARGUMENTS = net_arguments()


def run(args: Namespace) -> None:
    play, engine = play_settings(args), engine_settings(args)

    from tengen.engine.uci import session
    from tengen.jax_setup import keep_compiled

    keep_compiled()
    session.serve(args.net, play, engine)
