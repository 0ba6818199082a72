"""`tengen gtp`: a network for programs that speak the Go Text Protocol."""

from pathlib import Path

from tengen.commands.arguments import Arg, Namespace, engine_settings, net_arguments, play_settings

HELP = "play for programs that speak GTP"
ABOUT = """Answer GTP commands on the standard input, for Sabaki, GoGui, KGS, CGOS and others. NET is a network's
folder or a run, whose newest accepted network is meant. Other games than Go speak the same commands with their
own moves."""
EXAMPLE = "tengen gtp runs/go9 --seconds 5"
ARGUMENTS = (
    *net_arguments(),
    Arg("--resign CHANCE", "give up below this chance (default 0.05)", float),
    Arg("--ponder", "think while the opponent does"),
    Arg("--lag S", "seconds of each move lost to the connection (default 0.5)", float),
    Arg("--log FILE", "append all input and output to a file", Path),
)


def run(args: Namespace) -> None:
    play, engine = play_settings(args), engine_settings(args)

    from tengen.engine.gtp import commands
    from tengen.jax_setup import keep_compiled

    keep_compiled()
    commands.serve(args.net, play, engine, args.log)
