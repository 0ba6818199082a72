"""`tengen sweep`: many runs of one configuration, to find good settings."""

import contextlib
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from tengen.commands import part
from tengen.commands.arguments import Arg, Namespace, overrides, whole
from tengen.errors import OptionError
from tengen.words import program

HELP = "try many settings, and say which are good (docs/sweep.md)"
ABOUT = """Runs one configuration many times with different settings, and says which of them are good. Everything is
kept in one folder; Ctrl-C stops the sweep, and `tengen sweep --base SWEEP` goes on."""
EXAMPLE = (
    "tengen sweep tic_tac_toe --grid net.name=b1c8,b2c16 --steps 500\n"
    "tengen sweep connect_four --random train.lr=1e-4..1e-2:log --trials 20 --minutes 5"
)
ARGUMENTS = (
    Arg("CONFIG?", "a YAML file, or a name from `tengen config list`; without it, the sweep in --base goes on"),
    overrides(),
    "what is varied",
    Arg("--grid KEY=A,B,C", "a list of values to try", repeats=True),
    Arg("--random KEY=LOW..HIGH[:log]", "a range, or a list, to draw from", repeats=True),
    "how",
    Arg(
        "--strategy HOW",
        "grid: all combinations; random: --trials of them; halving: of --trials the best 1/--eta go on with more; "
        "population: --population of them, the best copied and perturbed over --generations",
        choices=("grid", "random", "halving", "population"),
    ),
    Arg("--trials N", "how many settings to draw", int),
    Arg("--eta N", "halving: one in N goes on (3)", int),
    Arg("--population N", "population: how many there are at a time", int),
    Arg("--generations G", "population: how often the worst are replaced", int),
    Arg("--seed N", "of what is drawn (0)", int),
    "how long a full trial goes on (default: the configuration's own goal)",
    Arg("--minutes M", type=float),
    *(Arg(f"--{unit} N", type=int) for unit in ("steps", "games", "rows")),
    "what is looked at",
    Arg("--metric NAME", "rating (on one scale for all), loss, value_loss, or another of metrics.jsonl"),
    Arg("--best WAY", "high or low (losses: low; others: high)", choices=("high", "low")),
    "where",
    Arg("--base SWEEP", "its folder (default: sweeps/<name of the run>)", Path),
    Arg("--parallel K", "trials at once (one a GPU, or one for two cores)", whole(1, 1000)),
    Arg("--on WHERE", "here, or on a Ray cluster: ray", default="here", choices=("here", "ray")),
    Arg("--address HOST:PORT", "ray: of its head node, or auto (default: starts one here)"),
    Arg("--trial-gpus X", "ray: GPUs for a trial, as 0.25 (1 if there are any)", float),
    Arg("--trial-cores N", "ray: cores for a trial (1 with a GPU, else 2)", float),
    Arg("--retry", "run those again that have failed"),
    Arg("--show", "run nothing, show what there is"),
    Arg("--json", "the results for programs, on standard output"),
)


def run(args: Namespace) -> int:
    from tengen.files import lock
    from tengen.sweep.driver import Driver
    from tengen.sweep.trial import LocalExecutor

    say = partial(part.say, file=sys.stderr if args.json else sys.stdout)
    folder, planned = _planned(args, say)
    if args.show:
        return _results(Driver(folder, folder.open(), LocalExecutor(())), args.json)
    with (
        _executor(args, folder.path, say) as executor,
        lock.locked(folder.path, what=f"the sweep in {folder.path}"),
    ):
        planned = folder.open() if planned is None else folder.begin(planned)
        driver = Driver(folder, planned, executor, say)
        if args.retry:
            say(f"running {driver.retry()} failed trials again")
        code = _drive(driver, args.json, _where(args))
    shown = _results(driver, args.json)
    return code or shown


@contextlib.contextmanager
def _executor(args: Namespace, folder: Path, say: Any) -> Any:
    from tengen.cluster.connection import CheckedNodes, joined
    from tengen.cores import cores
    from tengen.jax_setup import check_device_elsewhere
    from tengen.sweep import ray_executor, trial
    from tengen.sweep.trial import LocalExecutor

    if args.on == "here":
        if given := _where(args).split():
            raise OptionError(f"{given[0]}: is only for --on ray")
        check_device_elsewhere()
        devices, there = trial.gpus(), cores()
        count = trial.usual(devices, there) if args.parallel is None else args.parallel
        yield LocalExecutor(trial.shares(count, devices, there))
        return
    with joined(args.address, "--on ray") as ray:
        cluster = CheckedNodes(ray)
        share = ray_executor.trial_share(cluster.nodes(), args.trial_cores, args.trial_gpus)
        executor = ray_executor.RayExecutor(cluster, folder, share, args.parallel)
        say(f"on Ray: {share} for each trial")
        yield executor


def _where(args: Namespace) -> str:
    given = {"--on": args.on if args.on != "here" else None, "--address": args.address}
    given |= {"--trial-gpus": args.trial_gpus, "--trial-cores": args.trial_cores}
    return "".join(f" {name} {value}" for name, value in given.items() if value is not None)


def _planned(args: Namespace, say: Any) -> tuple[Any, Any]:
    """The folder, and the plan that was asked for; None if it is the one in the folder."""
    from tengen.sweep import plan
    from tengen.sweep.folder import SweepFolder

    if args.config is None:
        if args.base is None:
            raise OptionError("give a CONFIG to begin a sweep, or --base SWEEP to go on with one")
        if given := [name for name in ("grid", "random", "overrides", "strategy", "metric") if getattr(args, name)]:
            name = given[0].replace("overrides", "set")
            raise OptionError(f"--{name}: to go on with a sweep leave it out; to begin one give a CONFIG")
        return SweepFolder(args.base), None
    if args.show and not (args.grid or args.random):
        raise OptionError("--show: the sweep's folder is enough: tengen sweep --base SWEEP --show")
    found = plan.make(
        args.config,
        args.overrides,
        args.grid,
        args.random,
        strategy=args.strategy,
        metric=args.metric,
        best=args.best,
        budgets={unit: getattr(args, unit) for unit in plan.UNITS},
        **{name: getattr(args, name) for name in ("trials", "eta", "population", "generations", "seed")},
    )
    for note in found.notes:
        say(f"note: {note}")
    return SweepFolder(args.base or Path("sweeps") / found.config.run.name), found


def _drive(driver: Any, for_programs: bool, where: str) -> int:
    """Run it, on a terminal with a live table; returns the exit code. `where` has the options to continue with."""
    from tengen.run.signals import Stopping
    from tengen.sweep.report import screen

    with screen(driver, sys.stderr if for_programs else sys.stdout) as say, Stopping(say) as stopping:
        driver.run(lambda: stopping.asked)
    if stopping.asked:
        stream = sys.stderr if for_programs else sys.stdout
        going_on = f"{program()} sweep --base {driver.folder.path}{where}"
        print(f"stopped by {stopping.words}; to go on: {going_on}", file=stream)
    return stopping.code


def _results(driver: Any, for_programs: bool) -> int:
    """Print the results; returns 1 if all trials that have ended failed."""
    from tengen.sweep import report

    found = report.make(driver)
    if for_programs:
        print(json.dumps(report.values(found), indent=1))
    else:
        parts = [report.table(found), report.effects(found), report.ending(found, driver)]
        print("\n\n".join(filter(None, parts)))
        print(f"plot:      {driver.folder.path / 'plot.svg'}")
    ended = [row for row in found.rows if row.status in ("done", "failed")]
    return 1 if ended and all(row.status == "failed" for row in ended) else 0
