"""Options of all commands in which a network searches, and its progress on a terminal."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tengen import schema
from tengen.commands.arguments import Arg, Arguments, Namespace, overrides, positive
from tengen.config.settings.engine import EngineSettings, PlaySettings

_Settings = TypeVar("_Settings")


def net_arguments(visits: int = 800) -> Arguments:
    """NET and the limits of its search; `visits` is the default."""
    return (
        Arg(
            "NET",
            "a network's folder or file, a run, one that `tengen nets` lists at its end, or "
            "python:MODULE:FUNCTION@GAME",
        ),
        Arg("--visits N", f"visits per move (default {visits}, unless time is said)", int),
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
