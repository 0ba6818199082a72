"""`tengen selfplay`: games of the newest accepted network, as a part of a run."""

from pathlib import Path
from typing import Any

from tengen.commands.arguments import Arg, Namespace, positive
from tengen.commands.part import drive, part_arguments

HELP = "a part of a run: play games with its newest accepted network"
ABOUT = """Play games with the newest accepted network of a run, at random while there is none, and write their
rows. Any number of these may work for one run, on any machines. With --format katago, RUN may be a directory that
KataGo trains on; with --format lc0, the daemon and Lc0's trainers read the games. Ends with Ctrl-C."""
EXAMPLE = (
    "tengen selfplay go9 --base runs/go9\n"
    "tengen selfplay go9 --set game.observation=katago --base KATAGO --format katago\n"
    "tengen selfplay chess --base runs/chess --format lc0"
)

ARGUMENTS = (
    *part_arguments("end when games have ended and are written"),
    Arg("--max-games N", "end when this process has finished N games", positive),
    Arg("--max-rows N", "end when this process has made N rows", positive),
    Arg(
        "--format",
        "of the files: Tengen's own; KataGo's, in RUN/selfplay/NETWORK/tdata; or Lc0's, one for each game, in "
        "RUN/selfplay/NETWORK/lc0 (default: data.format); with the last two, selfplay.value_horizon is 0",
        choices=("tengen", "katago", "lc0"),
    ),
    Arg("--dump-trees DIR", "write search trees of games into DIR, one about every second, as text and as JSON", Path),
    Arg("--max-trees N", "with --dump-trees: at most N trees (default: 100)", positive, 100),
)


_HORIZON = "selfplay.value_horizon"


def overrides(args: Namespace) -> list[str]:
    """The settings of the command line, with those that `--format` stands for."""
    found = list(args.overrides)
    if args.format is not None:
        found.append(f"data.format={args.format}")
    if _single(args) and not any(text.partition("=")[0].strip() == _HORIZON for text in found):
        found.append(f"{_HORIZON}=0")
    return found


def _single(args: Namespace) -> bool:
    """Whether the files hold the values of single searches, whatever the other files of the run do."""
    return args.format in ("katago", "lc0")


def run(args: Namespace) -> int:
    args.overrides = overrides(args)
    own = [_HORIZON] if _single(args) else []

    def build(config: Any, base: Any, stop: Any, say: Any) -> Any:
        from tengen.loop.parts.selfplay import SelfplayPart

        max_games = 1 if args.once and not (args.max_games or args.max_rows) else args.max_games
        limits = {"max_games": max_games, "max_rows": args.max_rows, "max_trees": args.max_trees}
        return SelfplayPart(config, base, stop, say, trees=args.dump_trees, **limits)

    return drive(args, build, free=("selfplay.games", "net.dtype", "data.format", *own), own=own)
