"""`tengen run`: from random play to a strong network."""

import argparse
import contextlib
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

from tengen import config as configuration
from tengen.commands.config import BASE_HELP, add_config
from tengen.errors import OptionError, TengenError

_ABOUT = """Trains a network by self-play until the goal of the configuration is reached. Ctrl-C stops the run after
everything is written, and the same command goes on where it stopped."""
_MODES = ("fused", "sync", "async")
_PROGRESS = ("auto", "jsonl")
_AnyConfig = configuration.Config | configuration.TrainerConfig


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "run",
        help="self-play and learning, from nothing or from where a run stopped",
        description=_ABOUT,
        example="tengen run tic_tac_toe\ntengen run go9 --base runs/go9 --set goal.minutes=30",
    )
    add_config(parser)
    parser.add_argument("--base", type=Path, metavar="RUN", help=BASE_HELP)
    parser.add_argument(
        "--mode",
        choices=_MODES,
        metavar="MODE",
        help="fused: all on one device, in memory (the default); sync: the parts of the ring in turn, in one process; "
        "async: the parts as processes of their own. If CONFIG is a run, the default is the mode that it was run in",
    )
    parser.add_argument(
        "--parts", metavar="PARTS", help="async: only these, as selfplay,gate; others may run elsewhere (default: all)"
    )
    parser.add_argument("--tensorboard", action="store_true", help="also write TensorBoard files, to RUN/logs")
    parser.add_argument(
        "--progress",
        choices=_PROGRESS,
        default="auto",
        metavar="HOW",
        help="auto: a panel on a terminal, elsewhere plain lines (the default); jsonl: lines of the daemon's protocol "
        "on standard output, all else on standard error",
    )
    parser.add_argument("--tui", action="store_true", help="show the run in the dashboard (docs/tui.md)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run until the goal is reached, or until Ctrl-C."""
    args.began = time.monotonic()
    if args.tui and args.progress != "auto":
        raise OptionError("--tui: the dashboard asks for the progress that it needs; leave out --progress")
    config = configuration.load_any(args.config, args.overrides)
    base = configuration.base_of(args.config, config.run.name, args.base)
    args.mode = args.mode or _last_mode(args.config)
    if args.parts is not None and args.mode != "async":
        raise OptionError("--parts: only --mode async has parts to choose from")
    if isinstance(config, configuration.TrainerConfig) and args.mode != "fused":
        raise OptionError(f"--mode {args.mode}: a training of roles ({args.config}) runs in one process; leave it out")
    if args.tui:
        return _dashboard(args, config, base)
    from tengen.jax_setup import check_device_elsewhere, keep_compiled

    (check_device_elsewhere if args.mode == "async" else keep_compiled)()  # before there is a run directory
    if not isinstance(config, configuration.Config):
        return _roles(args, config, base)
    return {"fused": _fused, "sync": _synchronous, "async": _asynchronous}[args.mode](args, config, base)


def _last_mode(config: str) -> str:
    """How the run in the directory `config` was last run; fused if it is no run, or a new one."""
    from tengen.run import metrics

    run = configuration.run_of(config)
    return "fused" if run is None else metrics.last_mode(run / metrics.NAME)


def _say_if_too_much(config: configuration.Config, say: Any, backend: Any) -> None:
    """Tell who starts a GPU's job on a CPU; `backend` gives what JAX computes on, and is asked only if it matters."""
    from tengen.cores import cores
    from tengen.loop import cpu_advice

    count = len(cores())
    if cpu_advice.is_too_much(config, count) and backend() == "cpu":
        shipped = ((name, configuration.load_any(name)) for name in configuration.shipped())
        known = [(name, other) for name, other in shipped if isinstance(other, configuration.Config)]
        say(cpu_advice.advice(config, count, known))


def _dashboard(args: argparse.Namespace, config: _AnyConfig, base: Path) -> int:
    """The same command as a child of the dashboard."""
    from tengen.commands.tui import show
    from tengen.monitor.dashboard.client import ChildClient

    words = [
        sys.executable,
        "-m",
        "tengen",
        *_words(args, base, args.config),
        *(f"--set={each}" for each in args.overrides),
    ]
    words += ["--tensorboard"] if args.tensorboard else []
    return show(ChildClient([*words, "--progress", "jsonl"], "the run", orders=False), config.run.name)


def _display(args: argparse.Namespace, config: _AnyConfig, **options: Any) -> Any:
    """What shows the progress."""
    from tengen.monitor.progress import display

    if args.progress == "auto":
        return display(**options)
    from tengen.monitor.jsonl_display import StatusDisplay

    # Whatever else is printed, by whomever, goes to standard error.
    lines = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return StatusDisplay(lines, sys.stderr, config.run.name)


def _advising(args: argparse.Namespace, config: _AnyConfig, base: Path) -> Any:
    """Around the run: what to do if the training diverges."""
    from tengen.loop.divergence import advising

    return advising(config, base / "train" / "main", ["tengen", *_words(args, base)], args.overrides)


def _say(change: str) -> None:
    print(change, file=sys.stderr)


def _fused(args: argparse.Namespace, config: configuration.Config, base: Path) -> int:
    from tengen.config import provenance
    from tengen.files import lock
    from tengen.run import directory

    with lock.locked(base):
        directory.write(config, base, provenance.lines(), _say)
        return _run(args, config, base)


def _synchronous(args: argparse.Namespace, config: configuration.Config, base: Path) -> int:
    from tengen.config import provenance
    from tengen.run import directory
    from tengen.run.locks import taking_part

    with contextlib.ExitStack() as stack:
        for only in ("sync", "train-main", "gate"):
            stack.enter_context(taking_part(base, only))
        directory.write(config, base, provenance.lines(), _say)
        directory.write(config, base / "train" / "main", provenance.lines())
        return _run(args, config, base)


def _asynchronous(args: argparse.Namespace, config: configuration.Config, base: Path) -> int:
    from tengen.config import provenance
    from tengen.jax_setup import backend_elsewhere
    from tengen.loop import asynchronous
    from tengen.monitor import summary
    from tengen.monitor.pipeline_display import PipelineScreen
    from tengen.run import directory
    from tengen.run.stopping import Stopping

    parts = asynchronous.chosen(args.parts)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_advising(args, config, base))
        leads = _take_part(stack, base, joins=args.parts is not None)
        directory.write(config, base, provenance.lines(), _say)
        shown = stack.enter_context(_display(args, config, drawn=PipelineScreen))
        stopping = stack.enter_context(Stopping(shown.say))
        driver = stack.enter_context(
            asynchronous.Asynchronous(config, base, parts, shown, leads=leads, tensorboard=args.tensorboard)
        )
        _say_if_too_much(config, shown.say, backend_elsewhere)
        driver.run(lambda: stopping.asked)
    reason = f"stopped by {stopping.words}" if stopping.asked else driver.reason
    commands = _commands(args, base, config.goal, driver.counts, driver.steps)
    told = _ring_summary(driver, reason, commands)
    print("\n" + summary.render(told, encoding=sys.stdout.encoding if sys.stdout else None))
    return stopping.code


def _take_part(stack: contextlib.ExitStack, base: Path, joins: bool) -> bool:
    """Have the run for as long as the stack is open; whether this driver is the first, which some parts need not be."""
    from tengen.run import locks

    try:
        stack.enter_context(locks.taking_part(base, "async"))
    except configuration.ConfigError:
        if not joins:
            raise
        stack.enter_context(locks.taking_part(base))
        return False
    return True


def _ring_summary(driver: Any, reason: str, commands: dict[str, str]) -> Any:
    from tengen.analysis import run_chart
    from tengen.monitor import totals
    from tengen.monitor.summary import RunSummary
    from tengen.run import networks

    newest, run = networks.newest(driver.base), configuration.as_config(driver.base)
    try:
        ratings, waiting = totals.ratings(driver.base), networks.candidates(driver.base)
        curve = totals.curve(driver.base, ratings)
    except TengenError:  # which `tengen status` tells
        ratings, waiting, curve = None, [], ()
    drawn = driver.leads and not run_chart.write(driver.base, driver.config.run.name, ratings, curve)
    return RunSummary(
        name=driver.config.run.name,
        elapsed=driver.counts.seconds,
        games=driver.counts.games,
        rows=driver.counts.rows,
        steps=driver.steps,
        reason=reason,
        table=str(ratings) if ratings is not None else _why_no_rating(len(waiting), newest is not None),
        curve=curve,
        network="" if newest is None else str(newest.path),
        commands={
            **({"the chart": str(driver.base / run_chart.NAME)} if drawn else {}),
            "networks": driver.ring.networks or "none yet",
            **({"judge the rest": shlex.join(["tengen", "gate", run, "--once"])} if waiting else {}),
            **({"play the newest": shlex.join(["tengen", "play", str(waiting[-1].path)])} if waiting else {}),
            "what there is": shlex.join(["tengen", "status", str(driver.base)]),
            **({} if newest is None else {"play it": shlex.join(["tengen", "play", str(driver.base)])}),
            **({} if newest is None else {"rate it": shlex.join(["tengen", "rate", str(driver.base)])}),
            **commands,
        },
    )


def _why_no_rating(waiting: int, accepted: bool) -> str:
    """Of a run whose gate has finished no match."""
    why = "the first network is accepted without a match, and no match has ended since" if accepted else ""
    left = f"{waiting} {'network waits' if waiting == 1 else 'networks wait'} for the gate" if waiting else ""
    return "; ".join(filter(None, (f"no rating: {why or 'no network was accepted yet'}", left)))


def _loop(args: argparse.Namespace) -> Any:
    """The kind of loop. Importing it takes long, since it needs JAX."""
    from tengen.loop.fused import Fused
    from tengen.loop.sync import Sync

    return Fused if args.mode == "fused" else Sync


def _run(args: argparse.Namespace, config: configuration.Config, base: Path) -> int:
    import jax

    from tengen.jax_setup import explaining_memory
    from tengen.monitor import summary
    from tengen.run import safe_exit
    from tengen.run.stopping import Stopping

    with (
        _advising(args, config, base),
        _display(args, config) as shown,
        Stopping(shown.say) as stopping,
        explaining_memory(),
        _loop(args)(config, base, shown, tensorboard=args.tensorboard, began=args.began) as loop,
    ):
        stopping.on_leave = lambda: _left(args, base, shown)
        _say_if_too_much(config, shown.say, jax.default_backend)
        with safe_exit.possible():
            loop.prepare()
        if loop.reason:
            shown.say(f"nothing to do: {loop.reason}")
        loop.run(lambda: stopping.asked)
    reason = f"stopped by {stopping.words}" if stopping.asked else loop.reason
    told = _summary(loop, reason, _commands(args, base, config.goal, loop.counts, loop.trainer.step))
    print("\n" + summary.render(told, encoding=sys.stdout.encoding if sys.stdout else None))
    return stopping.code


def _roles(args: argparse.Namespace, config: configuration.TrainerConfig, base: Path) -> int:
    """A training of roles."""
    from tengen.config import provenance
    from tengen.files import lock
    from tengen.jax_setup import explaining_memory
    from tengen.loop.roles import RoleRun
    from tengen.monitor import summary
    from tengen.run import directory, safe_exit
    from tengen.run.stopping import Stopping

    with lock.locked(base):
        directory.write(config, base, provenance.lines(), _say)
        with (
            _advising(args, config, base),
            _display(args, config) as shown,
            Stopping(shown.say) as stopping,
            explaining_memory("games, batch or buffer.capacity of the roles"),
            RoleRun(config, base, shown, tensorboard=args.tensorboard, began=args.began) as loop,
        ):
            stopping.on_leave = lambda: _left(args, base, shown)
            with safe_exit.possible():
                loop.prepare()
            if loop.reason:
                shown.say(f"nothing to do: {loop.reason}")
            loop.run(lambda: stopping.asked)
    reason = f"stopped by {stopping.words}" if stopping.asked else loop.reason
    commands = _commands(args, base, config.goal, loop.counts, loop.trainer.step)
    told = _roles_summary(loop, reason, commands)
    print("\n" + summary.render(told, encoding=sys.stdout.encoding if sys.stdout else None))
    return stopping.code


def _facts(loop: Any, reason: str) -> dict[str, Any]:
    """What the summaries of all runs in one process say."""
    from tengen.monitor.reporting import losses

    parts = losses(loop.figures)
    return {
        "name": loop.config.run.name,
        "elapsed": loop.counts.seconds,
        "games": loop.counts.games,
        "rows": loop.counts.rows,
        "steps": loop.trainer.step,
        "reason": reason,
        "loss": parts.pop("loss", None),
        "losses": parts,
    }


def _chart(base: Path) -> dict[str, str]:
    """Where the picture of a run is, if there is one."""
    from tengen.analysis.run_chart import NAME

    return {"the chart": str(base / NAME)} if (base / NAME).exists() else {}


def _roles_summary(loop: Any, reason: str, commands: dict[str, str]) -> Any:
    from tengen.loop.roles import results
    from tengen.monitor.summary import RunSummary

    lines = results(loop.evaluation)
    heading = "mean result of the last evaluation (1 is the best, -1 the worst)"
    return RunSummary(
        **_facts(loop, reason),
        table="\n".join([heading, *lines]) if lines else "nothing was evaluated this time",
        network=", ".join(map(str, loop.networks)),
        commands={**_chart(loop.base), **commands},
    )


def _summary(loop: Any, reason: str, commands: dict[str, str]) -> Any:
    from tengen.monitor.summary import RunSummary

    ratings = loop.rater.ratings
    if loop.network_path is not None:
        commands = {"play it": shlex.join(["tengen", "play", str(loop.base)]), **commands}
    commands = {**_chart(loop.base), **commands}
    return RunSummary(
        **_facts(loop, reason),
        table="" if ratings is None else str(ratings),
        curve=loop.rater.curve(),
        verdict=_verdict(loop),
        network=str(loop.network_path or ""),
        commands=commands,
    )


def _verdict(loop: Any) -> str:
    """How strong the network is, and what would make it stronger."""
    from tengen import nets
    from tengen.config.settings.engine import EngineSettings
    from tengen.loop.rating import UNTRAINED
    from tengen.monitor import verdict

    config, base, rated = loop.config, loop.base, loop.rater.rated()
    if loop.trainer.step == 0:
        first, rows = config.data.first_rows, loop.counts.rows
        why = f"learning begins with {first:,} rows (data.first_rows), and {rows:,} were played"
        return f"Nothing was learned yet: {why if rows < first else 'the run ended before the first step'}."
    name, larger = verdict.larger_network(config.net.name), ""
    with contextlib.suppress(TengenError, ValueError):
        nets.spec(name)
        # As this run is configured, with all that was --set, and in its mode.
        words = ["tengen", "run", configuration.as_config(base), "--base", f"{base}-{name}"]
        larger = shlex.join([*words, "--set", f"net.name={name}"])
    visits = EngineSettings().visits
    search = f"{shlex.join(['tengen', 'play', str(base), '--visits', str(4 * visits)])} (without --visits: {visits}"
    search += f"; in its matches: {config.rating.simulations})"
    found = verdict.hints(rated, UNTRAINED, search, larger, config.rating.references)
    told = "" if rated is None else verdict.strength(rated, loop.counts.seconds, UNTRAINED)
    return "\n".join(filter(None, (told, "To make it stronger:", *(f"  {hint}" for hint in found))))


def _commands(
    args: argparse.Namespace, base: Path, goal: configuration.GoalSection, counts: Any, steps: int
) -> dict[str, str]:
    """What to type to go on."""
    from tengen.run.counts import further

    words = ["tengen", *_words(args, base)]
    longer = further(goal, counts, steps)  # also if it was stopped while it ended: else there would be nothing to do
    for name, limit in longer.items():
        words += ["--set", f"goal.{name}={limit:g}" if isinstance(limit, float) else f"goal.{name}={limit}"]
    if args.tensorboard:
        words.append("--tensorboard")
    return {"train further" if longer else "go on": shlex.join(words)}


def _left(args: argparse.Namespace, base: Path, shown: Any) -> None:
    """The last words of a run that was stopped while it compiled."""
    shown.close()
    print(f"go on: {shlex.join(['tengen', *_words(args, base)])}")


def _words(args: argparse.Namespace, base: Path, config: str | None = None) -> list[str]:
    """The command that goes on with the run, or begins one of a configuration, without settings."""
    words = ["run", configuration.as_config(base)] if config is None else ["run", config, "--base", str(base)]
    if args.mode != "fused":
        words += ["--mode", args.mode]
    if args.parts is not None:
        words += ["--parts", args.parts]
    return words
