"""What the commands that look at positions share: the options of a search, and how a person sees that it goes on."""

import argparse
import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def add_net(parser: argparse.ArgumentParser) -> None:
    """Declare which network."""
    parser.add_argument("net", metavar="NET", help="a network's folder or file, or a run (its newest network)")


def add_search(parser: argparse.ArgumentParser, visits: int, least: int) -> None:
    """Declare how long to think about each position."""
    parser.add_argument(
        "--visits", type=whole(least), metavar="N", help=f"visits per position (default: {visits}, or until --seconds)"
    )
    parser.add_argument(
        "--seconds", type=seconds, metavar="S", help="seconds per position (or --visits: what is first)"
    )
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


def whole(least: int) -> Callable[[str], int]:
    """A whole number of at least so much, for argparse."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) >= least):
            raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, got {text[:40]!r}")
        return int(text)

    return parse


def seconds(text: str) -> float:
    """A time, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (0 < value < 1e7):
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, got {text[:40]!r}")
    return value


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
