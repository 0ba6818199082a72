"""How commands declare their arguments, and the arguments that many of them have."""

import argparse
import contextlib
import sys
from argparse import Namespace as Namespace
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tengen import schema
from tengen.config.settings.match import EngineSettings, PlaySettings
from tengen.cores import cores
from tengen.errors import TengenError

if TYPE_CHECKING:
    from tengen.match.driver import MatchPlan
    from tengen.match.engines.engine import Terms

_Settings = TypeVar("_Settings")


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """A parser of whole numbers from `least` to `most`."""

    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else -1
        if number < least or (most is not None and number > most):
            words = f"of at least {least}" if most is None else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"expected a whole number {words}, got {text[:40]!r}")
        return number

    return parse


def amount(noun: str, most: float) -> Callable[[str], float]:
    """A parser of numbers above 0, at most `most`; `noun` says of what, as "seconds"."""

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        if not 0 < number <= most:
            raise argparse.ArgumentTypeError(f"expected {noun} above 0, at most {most:,g}, got {text[:40]!r}")
        return number

    return parse


def file_or_dash(text: str) -> Path | str:
    """`-` is standard output."""
    return text if text == "-" else Path(text)


count, positive = whole(0), whole(1)


@dataclass(frozen=True)
class Arg:
    """One argument. `form` is how it is written: `NAME`, `--name VALUE`, or `--name` for one that is there or not.

    Several options before the value mean the same. `?`, `*` or `+` after the value say how often it comes (`nargs`).
    """

    form: str
    help: str | None = None
    type: Callable[[str], Any] | None = None
    default: Any = None
    choices: tuple[str, ...] | None = None
    dest: str | None = None
    required: bool | None = None
    repeats: bool = False  # whether the option may be given several times; the values make a list

    def declare(self, parser: Any) -> None:
        names = [word for word in self.form.split() if word.startswith("--")]
        shown = [word for word in self.form.split() if not word.startswith("--")]
        given = {"help": self.help, "type": self.type, "choices": self.choices, "required": self.required}
        given |= {"dest": self.dest, "default": [] if self.repeats else self.default}
        if shown and shown[-1][-1] in "?*+":
            given["nargs"], shown[-1] = shown[-1][-1], shown[-1][:-1]
        elif len(shown) > 1:
            given["nargs"] = len(shown)
        given["metavar"] = None if not shown else shown[0] if len(shown) == 1 else tuple(shown)
        if not names:
            names, given["dest"] = [self.dest or shown[0].lower()], None
        if self.repeats:
            given["action"] = "append"
        elif not (shown or self.choices):
            given |= {"action": "store_true", "default": False}
        parser.add_argument(*names, **{name: value for name, value in given.items() if value is not None})


Arguments = Iterable[Arg | str]
"""A text begins a group of arguments, of which it is the title."""


@dataclass(frozen=True)
class Subcommand:
    """One of the commands of a command. The function `run_NAME` of the same module runs it."""

    help: str
    about: str
    example: str
    arguments: Arguments = ()


def declare(parser: argparse.ArgumentParser, arguments: Arguments) -> None:
    """Declare the arguments of a command."""
    group: Any = parser
    for argument in arguments:
        if isinstance(argument, str):
            group = parser.add_argument_group(argument)
        else:
            argument.declare(group)


def overrides(words: str = "change one setting", form: str = "SECTION.KEY=VALUE") -> Arg:
    """`--set`; `words` say what it does."""
    return Arg(f"--set {form}", f"{words} (may be repeated)", dest="overrides", repeats=True)


CONFIG_HELP = "a YAML file, a name from `tengen config list`, or the directory of a run"
CONFIG = (Arg("CONFIG", CONFIG_HELP), overrides())
"""By which every command is told its configuration."""
BASE = Arg("--base RUN", "the run directory (default: CONFIG if that is one, else runs/<name of the run>)", Path)


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


def net_arguments(visits: int = 800) -> Arguments:
    """NET and the limits of its search; `visits` is the default."""
    return (
        Arg(
            "NET",
            "a network's folder or file, a run, one that `tengen nets` lists at its end, or "
            "python:MODULE:FUNCTION@GAME",
        ),
        Arg("--visits N", f"visits per move (default {visits}, unless a time is given)", int),
        Arg("--seconds S", "seconds per move", float),
        Arg("--leaves N", "positions evaluated at once (default: by the device)", int),
        Arg("--slots N", "positions that the search remembers", int),
        Arg("--precision TYPE", "bfloat16 or float32 (default: what suits the device)"),
    )


def position_arguments(visits: int) -> Arguments:
    """NET, the limits of a search, and the options that find a position."""
    return (
        *net_arguments(visits),
        overrides("an option of the game that is not the network's own, as komi=6.5 or size=13", "OPTION=VALUE"),
        Arg("--which N", "of a file with several games the N-th (default: the first)", positive),
    )


def engine_settings(args: Namespace) -> EngineSettings:
    """The settings of the engine. TengenError says which option is wrong."""
    found = {"leaves": args.leaves, "slots": args.slots, "precision": args.precision}
    if args.visits is not None:
        found["visits"] = args.visits
    return _checked(EngineSettings, found)


def play_settings(args: Namespace) -> PlaySettings:
    found = {"visits": args.visits, "seconds": args.seconds}
    found |= {name: getattr(args, name, None) for name in ("resign", "ponder", "lag")}
    return _checked(PlaySettings, found)


def limits(args: Namespace, visits: int) -> tuple[int | None, float | None]:
    """Visits and seconds per position; `visits` is the default."""
    play = play_settings(args)
    return (visits if play.visits is None and play.seconds is None else play.visits), play.seconds


@contextlib.contextmanager
def thinking(words: str) -> Iterator[Callable[[Any], None]]:
    """Show progress on a terminal; yields a function to call with every search report."""
    if not sys.stderr.isatty():
        yield lambda report: None
        return
    from rich.console import Console

    with Console(stderr=True).status(words) as status:
        yield lambda report: status.update(f"{words}: {report.visits:,} visits, value {report.value:+.3f}")


def _checked(cls: type[_Settings], found: dict[str, Any]) -> _Settings:
    return schema.from_options(cls, {key: value for key, value in found.items() if value is not None}, "option")
