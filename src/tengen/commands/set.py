"""`tengen set`: change settings of a run while it runs, or before it is started again."""

from pathlib import Path

from tengen.commands.arguments import Arg, Namespace

HELP = "change settings of a run, also while it is going on"
ABOUT = """Changes settings of a run. A run that is going on uses them within a round; otherwise they apply when it is
started again. Every change is kept with its time in RUN/changes.jsonl. A setting that cannot change is refused, with
the reason (docs/loop.md)."""
EXAMPLE = "tengen set runs/go9 train.lr_scale=0.3 goal.minutes=600"
ARGUMENTS = (
    Arg("RUN", "the run directory", Path, dest="base"),
    Arg("KEY=VALUE+", "a setting and its new value", dest="settings"),
)


def run(args: Namespace) -> None:
    from tengen.monitor import overview
    from tengen.run import config_file, part_status

    overview.check(args.base)
    made = config_file.change(args.base, args.settings)
    if not made:
        print("nothing changes: the run has these settings already")
    run = next((path for path in (args.base, *args.base.parents) if (path / part_status.FOLDER).is_dir()), args.base)
    alive = any(part.alive for part in part_status.look(run))
    for change, rule in made.items():
        when = "within a round" if alive and rule.change == "now" else "when the run is started again"
        print(f"{change} ({when})")
