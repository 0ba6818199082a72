"""`tengen status`: what a run is doing, and what it has produced so far."""

import json
from pathlib import Path

from tengen.commands.arguments import Arg, Namespace

HELP = "what a run is doing, its networks, its data and its disk"
ABOUT = """Shows what a run is doing now, its newest networks with their strength, and how much data and disk it has.
Changes nothing, and works while the run is going on or after it."""
EXAMPLE = "tengen status runs/go9"
ARGUMENTS = (
    Arg("RUN", "the run directory", Path, dest="base"),
    Arg("--all", "list all networks and changes of settings, not only the newest"),
    Arg("--json", "print JSON, for programs"),
)


def run(args: Namespace) -> None:
    from tengen.monitor import overview, overview_text

    found = overview.look(args.base)
    print(json.dumps(overview.values(found), indent=1) if args.json else overview_text.describe(found, args.all))
