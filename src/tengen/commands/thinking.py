"""Options of all commands in which a network searches, and its progress on a terminal."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from tengen import schema
from tengen.commands.config import add_overrides
from tengen.commands.numbers import positive
from tengen.config.settings.engine import EngineSettings, PlaySettings

_Settings = TypeVar("_Settings")


def add_thinking(parser: argparse.ArgumentParser, visits: int = 800) -> None:
    """Declare NET and the limits of its search; `visits` is the default."""
    parser.add_argument(
        "net",
        metavar="NET",
        help="a network's folder or file, a run, one that `tengen nets` lists at its end, or "
        "python:MODULE:FUNCTION@GAME",
    )
    parser.add_argument(
        "--visits", type=int, metavar="N", help=f"visits per move (default {visits}, unless time is said)"
    )
    parser.add_argument("--seconds", type=float, metavar="S", help="seconds per move")
    parser.add_argument("--leaves", type=int, metavar="N", help="positions evaluated at once (default: by the device)")
    parser.add_argument("--slots", type=int, metavar="N", help="positions that the search remembers")
    parser.add_argument("--precision", metavar="TYPE", help="bfloat16 or float32 (default: what suits the device)")


def engine_settings(args: argparse.Namespace) -> EngineSettings:
    """The settings of the engine. TengenError says which option is wrong."""
    found = {"leaves": args.leaves, "slots": args.slots, "precision": args.precision}
    if args.visits is not None:
        found["visits"] = args.visits
    return _checked(EngineSettings, found)


def play_settings(args: argparse.Namespace) -> PlaySettings:
    """The settings of its play."""
    found = {"visits": args.visits, "seconds": args.seconds}
    found |= {name: getattr(args, name, None) for name in ("resign", "ponder", "lag")}
    return _checked(PlaySettings, found)


def add_search(parser: argparse.ArgumentParser, visits: int) -> None:
    """Declare NET, the limits of a search, and the options that find a position."""
    add_thinking(parser, visits)
    add_overrides(parser, "an option of the game that is not the network's own, as komi=6.5 or size=13", "OPTION=VALUE")
    parser.add_argument(
        "--which", type=positive, metavar="N", help="of a file with several games the N-th (default: the first)"
    )


def limits(args: argparse.Namespace, visits: int) -> tuple[int | None, float | None]:
    """Visits and seconds per position; `visits` is the default."""
    play = play_settings(args)
    return (visits if play.visits is None and play.seconds is None else play.visits), play.seconds


def file_or_dash(text: str) -> Path | str:
    """`-` is standard output."""
    return text if text == "-" else Path(text)


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
