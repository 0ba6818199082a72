"""Options of commands that play matches, with foreign engines or on the device."""

from typing import TYPE_CHECKING

from tengen.commands.arguments import Arg, Namespace, positive
from tengen.cores import cores
from tengen.errors import TengenError

if TYPE_CHECKING:
    from tengen.match.driver import MatchPlan
    from tengen.match.engines.engine import Terms
ENGINES = (
    Arg("--seconds-per-move S", "what foreign engines are given", float),
    Arg("--nodes N", "nodes per move for engines that speak UCI", positive),
    Arg("--patience S", "seconds after which an engine that says nothing has lost (%(default)s)", float, 60.0),
    Arg(
        "--uci-option NAME=VALUE",
        "an option for engines that speak UCI, as 'Skill Level=3' (may be repeated)",
        dest="uci_options",
        repeats=True,
    ),
    Arg("--parallel K", "foreign engines that think at once (default: one per core)", positive),
    Arg(
        "--tables T",
        "games with foreign engines at once, each with a separate process (default: twice --parallel)",
        positive,
    ),
    Arg("--batch N", "games at once without foreign engines (default: 256, on a CPU 16)", positive),
)
"""How engines play, and how many games are played at once."""


def make_plan(args: Namespace, opening_moves: int, tables_per_engine: int = 2) -> "MatchPlan":
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


def read_terms(args: Namespace) -> "Terms":
    """What engines are told about time. TengenError if no engine could play like that."""
    from tengen.match.engines.engine import Terms

    options = []
    for text in args.uci_options:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals) or not text.isprintable():
            raise TengenError(f"--uci-option {text}: expected NAME=VALUE, as in 'Skill Level=3'")
        options.append((name, value))
    terms = Terms(args.seconds_per_move, args.nodes, patience=args.patience, options=tuple(options))
    terms.check()
    return terms
