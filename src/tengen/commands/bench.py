"""`tengen bench`: measure this machine."""

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

from tengen import files, schema
from tengen.bench.parts import PARTS, BenchPart
from tengen.commands.arguments import Arg, Namespace, Subcommand, amount, overrides, whole
from tengen.errors import TengenError

_INTERRUPTED = 130

HELP = "measure how fast this machine is"
ABOUT = "Measures how fast this machine is. Each benchmark is a command of its own."
EXAMPLE = "tengen bench games"
NOUN = "benchmark"
_COUNT = whole(1, 1_000_000)
COMMANDS = {
    "games": Subcommand(
        "steps per second of the rules, next to pgx if it is installed",
        "Measures how many moves per second the rules of each game make on this device, in large "
        "batches. If pgx is installed, its games are measured too.",
        "tengen bench games go9 --batch 256",
        (
            Arg("CONFIG?", "only the game of this configuration"),
            overrides("with CONFIG: change one setting"),
            Arg("--base RUN", "with CONFIG: a run directory for both", Path),
            Arg("--batch N", "games at once (default: what suits the device)", _COUNT),
            Arg("--steps N", "steps of one measurement (default: 100, on a CPU 30)", _COUNT),
            Arg("--repeats N", "measurements, of which the median is shown (%(default)s)", _COUNT, 5),
            Arg("--after N", "moves played before measuring (%(default)s)", whole(0, 1_000_000), 0),
            Arg(
                "--cpu-time",
                "on a CPU: processor time of all threads instead of the clock's, for a machine that others use too",
            ),
            Arg("--no-pgx", "do not measure pgx"),
            Arg("--json FILE", "also write the results there", Path),
        ),
    ),
    "all": Subcommand(
        "every figure of docs/performance.md that this machine can make, next to pgx + mctx",
        "Measures every figure of docs/performance.md that this machine can make in some minutes, next to "
        "pgx and mctx if they are installed, and says what changed against the stored figures of this kind of device. "
        "Each benchmark is a process with its own share of the time. On a CPU sizes are small, and only ratios are "
        "compared. Benchmarks: " + "; ".join(f"{part.name}: {part.about}" for part in PARTS) + ".",
        "tengen bench all --json figures.json\ntengen bench all --only search,mctx --minutes 3",
        (
            Arg("--only NAMES", "only these benchmarks, separated by commas"),
            Arg("--minutes M", "about how long it may take (%(default)g)", amount("minutes", 1440), 7.5),
            Arg("--against FILE", "compare with this file of --json instead of the stored figures", Path),
            Arg("--json FILE", "also write the figures there (-: to standard output, and the table to stderr)"),
        ),
    ),
}


def run_all(args: Namespace) -> int:
    """Print a row for every figure as soon as it is measured, then what changed."""
    from rich.console import Console

    from tengen.bench import everything
    from tengen.bench.figures import read, stored

    chosen = _chosen(args.only)
    against = None if args.against is None else read(args.against)
    path = None if args.json in (None, "-") else Path(args.json)
    if path is not None:
        files.make_folder(path.parent)
    out = sys.stderr if args.json == "-" else sys.stdout
    code = 0
    with Console(stderr=True).status("looking for the device ...") as status:
        here = everything.machine()
        shown = everything.BenchTable(here, against or stored(here))
        print("\n".join(shown.head()), file=out, flush=True)
        try:
            for event in everything.measure(chosen, here, 60 * args.minutes):
                status.update(shown.doing(event))
                for line in shown.add(event):
                    print(line, file=out, flush=True)
                if path is not None:  # what is measured is kept, whatever happens later
                    schema.write_json(path, shown.report())
        except KeyboardInterrupt:
            code = _INTERRUPTED
    print("\n".join(shown.summary(whole=args.only is None)), file=out, flush=True)
    if args.json == "-":
        print(json.dumps(dataclasses.asdict(shown.report()), indent=1))
    elif path is not None:
        _write(path, shown.report())
    return code or (1 if shown.failed else 0)


def _chosen(names: str | None) -> list[BenchPart]:
    known = [part.name for part in PARTS]
    wanted = known if names is None else [name.strip() for name in names.split(",")]
    if unknown := [name for name in wanted if name not in known]:
        raise TengenError(f"--only: there is no benchmark {schema.quote(unknown[0])}; there are {', '.join(known)}")
    return [part for part in PARTS if part.name in wanted]


def run_games(args: Namespace) -> None:
    import jax
    from rich.console import Console

    from tengen.bench import games as bench

    if args.cpu_time and jax.default_backend() != "cpu":
        raise TengenError("bench games: --cpu-time is for a CPU; here the device does the work")
    cases, seed = _cases(args)
    steps = args.steps or (30 if jax.default_backend() == "cpu" else 100)
    with_pgx = not args.no_pgx and bench.pgx_is_installed()
    unit = ", processor time" if args.cpu_time else ""
    device = f"{jax.devices()[0].device_kind} (JAX {jax.__version__})"
    print(f"step + legal mask + observation of a batch of games on {device}{unit}")
    if not args.no_pgx and not with_pgx:
        print("pgx is not installed, so there is nothing to compare with: pip install 'tengen-zero[pgx]'")
    print(f"{'game':<14}{'batch':>7}{'bytes/node':>12}{'us/step':>10}{'steps/s':>15}{'pgx us/step':>14}{'ratio':>8}")
    results, console = [], Console(stderr=True)
    clock = time.process_time if args.cpu_time else time.perf_counter
    measured = bench.measure(cases, steps, args.after, args.repeats, with_pgx, seed, clock)
    for case in cases:
        with console.status(f"compiling and measuring {case.label} ..."):
            result = next(measured)
        results.append(result.as_dict())
        print(_row(result), flush=True)
    about = {"steps": steps, "after": args.after, "repeats": args.repeats, "jax": jax.__version__, "results": results}
    about |= {"clock": "processor time"} if args.cpu_time else {}
    for path in filter(None, (args.json, args.base and args.base / "logs" / "bench-games.json")):
        _write(path, about)


def _cases(args: Namespace) -> tuple[list[Any], int]:
    from tengen.bench import games as bench

    if args.config is None:
        if args.overrides or args.base:
            raise TengenError("bench games: --set and --base need a CONFIG before them")
        return bench.suite(args.batch), 0
    from tengen import config as configuration
    from tengen.config import provenance
    from tengen.run import config_file

    config = configuration.load(args.config, args.overrides)
    if args.base:
        config_file.write(config, args.base, provenance.lines())
    options = dataclasses.asdict(config.game.options)
    batch = args.batch or config.selfplay.games
    return [bench.BenchCase(config.run.name, config.game.name, options, batch)], config.run.seed


def _row(result: Any) -> str:
    row = f"{result.label:<14}{result.batch:>7,}{result.bytes_per_node:>12,}{result.microseconds:>10,.1f}"
    row += f"{result.steps_per_second:>15,.0f}"
    if result.pgx_microseconds is None:
        return row + f"{'-':>14}{'-':>8}"
    return row + f"{result.pgx_microseconds:>14,.1f}{result.pgx_microseconds / result.microseconds:>7.1f}x"


def _write(path: Path, results: Any) -> None:
    files.make_folder(path.parent)
    schema.write_json(path, results, indent=2)
    print(f"results written to {path}")
