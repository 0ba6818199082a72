"""What the commands that look at positions share: the options of a search, and how a person sees that it goes on."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tengen.commands.thinking import add_thinking, play_settings


def add_search(parser: argparse.ArgumentParser, visits: int) -> None:
    """Declare NET, how long to think about each position, and what else is needed to find it."""
    add_thinking(parser, visits)
    parser.add_argument(
        "--set",
        dest="options",
        metavar="OPTION=VALUE",
        action="append",
        default=[],
        help="an option of the game that is not the network's own, as komi=6.5 or size=13 (may be repeated)",
    )
    parser.add_argument(
        "--which", type=whole(1), metavar="N", help="of a file with several games the N-th (default: the first)"
    )


def limits(args: argparse.Namespace, visits: int) -> tuple[int | None, float | None]:
    """Visits and seconds per position; `visits` if nothing is said. TengenError if that is no limit."""
    told = play_settings(args)
    return (visits if told.visits is None and told.seconds is None else told.visits), told.seconds


def whole(least: int) -> Callable[[str], int]:
    """A whole number of at least so much, for argparse."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) >= least):
            raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, got {text[:40]!r}")
        return int(text)

    return parse


def file_or_dash(text: str) -> Path | str:
    """`-` is standard output."""
    return text if text == "-" else Path(text)


@contextlib.contextmanager
def thinking(words: str) -> Iterator[Callable[[Any], None]]:
    """While open, a terminal shows that something is going on; gives what to call with every new thought."""
    if not sys.stderr.isatty():
        yield lambda thought: None
        return
    from rich.console import Console

    with Console(stderr=True).status(words) as status:
        yield lambda thought: status.update(f"{words}: {thought.visits:,} visits, value {thought.value:+.3f}")
