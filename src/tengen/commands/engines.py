"""Options of commands that play matches, with foreign engines or on the device."""

import argparse
from typing import TYPE_CHECKING

from tengen.commands.numbers import positive
from tengen.cores import cores
from tengen.errors import TengenError

if TYPE_CHECKING:
    from tengen.match.driver import MatchPlan
    from tengen.match.engines.engine import Terms


def add_engines(parser: argparse.ArgumentParser) -> None:
    """Declares how engines play, and how many games are played at once."""
    parser.add_argument("--seconds-per-move", type=float, metavar="S", help="what foreign engines are given")
    parser.add_argument("--nodes", type=positive, metavar="N", help="nodes per move for engines that speak UCI")
    parser.add_argument(
        "--patience",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds after which an engine that says nothing has lost (%(default)s)",
    )
    parser.add_argument(
        "--uci-option",
        dest="uci_options",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an option for engines that speak UCI, as 'Skill Level=3' (may be repeated)",
    )
    parser.add_argument(
        "--parallel", type=positive, metavar="K", help="foreign engines that think at once (default: one per core)"
    )
    parser.add_argument(
        "--tables",
        type=positive,
        metavar="T",
        help="games with foreign engines at once, each with a separate process (default: twice --parallel)",
    )
    parser.add_argument(
        "--batch", type=positive, metavar="N", help="games at once without foreign engines (default: 256, on a CPU 16)"
    )


def make_plan(args: argparse.Namespace, opening_moves: int, tables_per_engine: int = 2) -> "MatchPlan":
    """How a match is played with these options, on this machine."""
    import jax

    from tengen.match.driver import MatchPlan

    parallel = args.parallel or len(cores())
    return MatchPlan(
        games=args.games,
        opening_moves=opening_moves,
        seed=args.seed,
        parallel=parallel,
        tables=max(parallel, args.tables or parallel * tables_per_engine),
        at_once=max(2, args.batch or (16 if jax.default_backend() == "cpu" else 256)),
    )


def check_games(games: int) -> None:
    """TengenError unless the games are pairs."""
    if games % 2:
        raise TengenError(f"--games: expected an even number, since games come in pairs, got {games}")


def dtype() -> str:
    """The type that networks compute in on this machine."""
    import jax

    return "float32" if jax.default_backend() == "cpu" else "bfloat16"


def read_terms(args: argparse.Namespace) -> "Terms":
    """What engines are told about time. TengenError if no engine could play like that."""
    from tengen.match.engines.engine import Terms

    terms = Terms(
        seconds=args.seconds_per_move,
        nodes=args.nodes,
        patience=args.patience,
        options=_uci_options(args.uci_options),
    )
    terms.check()
    return terms


def _uci_options(texts: list[str]) -> tuple[tuple[str, str], ...]:
    pairs = []
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals) or not text.isprintable():
            raise TengenError(f"--uci-option {text}: expected NAME=VALUE, as in 'Skill Level=3'")
        pairs.append((name, value))
    return tuple(pairs)
