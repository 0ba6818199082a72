"""Options that all commands with a thinking network share."""

import argparse
from typing import Any, TypeVar

from tengen import schema
from tengen.config.settings.engine import EngineSettings, PlaySettings

_Settings = TypeVar("_Settings")


def add_thinking(parser: argparse.ArgumentParser, visits: int = 800) -> None:
    """Declare NET and how it thinks; `visits` are what the command takes if nothing is said."""
    parser.add_argument("net", metavar="NET", help="a network's folder or file, or a run")
    parser.add_argument(
        "--visits", type=int, metavar="N", help=f"visits per move (default {visits}, unless time is said)"
    )
    parser.add_argument("--seconds", type=float, metavar="S", help="seconds per move")
    parser.add_argument("--leaves", type=int, metavar="N", help="positions evaluated at once (default: by the device)")
    parser.add_argument("--slots", type=int, metavar="N", help="positions that the search remembers")
    parser.add_argument("--precision", metavar="TYPE", help="bfloat16 or float32 (default: what suits the device)")


def engine_settings(args: argparse.Namespace) -> EngineSettings:
    """TengenError says which option is wrong."""
    found = {"leaves": args.leaves, "slots": args.slots, "precision": args.precision}
    if args.visits is not None:
        found["visits"] = args.visits
    return _checked(EngineSettings, found)


def play_settings(args: argparse.Namespace) -> PlaySettings:
    """The same for how it plays."""
    found = {"visits": args.visits, "seconds": args.seconds}
    found |= {name: getattr(args, name, None) for name in ("resign", "ponder", "lag")}
    return _checked(PlaySettings, found)


def _checked(cls: type[_Settings], found: dict[str, Any]) -> _Settings:
    return schema.from_options(cls, {key: value for key, value in found.items() if value is not None}, "option")
