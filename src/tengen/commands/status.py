"""`tengen status`: what a run is doing, and what it has produced so far."""

import argparse
import json
from pathlib import Path
from typing import Any


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "status",
        help="what a run is doing, its networks, its data and its disk",
        description="Shows what a run is doing now, its newest networks with their strength, and how much "
        "data and disk it has. Changes nothing, and works while the run is going on or after it.",
        example="tengen status runs/go9",
    )
    parser.add_argument("base", type=Path, metavar="RUN", help="the run directory")
    parser.add_argument(
        "--all", action="store_true", help="list all networks and changes of settings, not only the newest"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the status of a run."""
    from tengen.monitor import overview, overview_text

    found = overview.look(args.base)
    print(json.dumps(overview.values(found), indent=1) if args.json else overview_text.describe(found, args.all))
    return 0
