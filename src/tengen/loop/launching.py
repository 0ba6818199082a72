"""Runs a configuration from start to summary, in one of the modes: fused, sync, async, or training of roles."""

import contextlib
import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tengen import games, nets
from tengen.analysis import run_chart
from tengen.config import provenance
from tengen.config.sections import Config
from tengen.config.settings.match import EngineSettings
from tengen.config.source import RUN_FILE, as_config
from tengen.config.trainers import TrainerConfig
from tengen.errors import TengenError
from tengen.files import lock
from tengen.monitor import strength, summary, totals
from tengen.monitor.display import Display, open_display
from tengen.monitor.overview import goal_options
from tengen.monitor.run_view import RunView
from tengen.monitor.summary import RunSummary
from tengen.run import changes, config_file, first_network, grown, locks, networks, safe_exit
from tengen.run.diverged import advising
from tengen.run.goals import RunCounts, further
from tengen.run.signals import Stopping
from tengen.run.status import losses
from tengen.web import report
from tengen.words import program

_GAMES = 12  # in the report at the end of a run
_ENDING = 3.0  # seconds that a process which is about to end may keep the run

Advise = Callable[[Callable[[str], None], Callable[[], str]], None]
"""(say, backend): warns users who start a job for a GPU on a CPU; `backend()` names JAX's, and is called if needed."""


@dataclass(frozen=True)
class RunRequest:
    config: Config | TrainerConfig
    base: Path
    mode: str = "fused"
    parts: str | None = None  # async: only these
    tensorboard: bool = False
    jsonl: bool = False  # progress as lines of the daemon's protocol
    overrides: tuple[str, ...] = ()
    began: float | None = None  # when the process began, by `time.monotonic`
    address: str | None = None  # cluster: where it is

    @property
    def options(self) -> dict[str, Any]:
        """What every loop is given besides the configuration, the run directory and the display."""
        return {"tensorboard": self.tensorboard, "began": self.began}

    def command(self, config: str | None = None) -> list[str]:
        """The command that continues the run, or starts it from a configuration, without --set."""
        words = ["run", as_config(self.base)] if config is None else ["run", config, "--base", str(self.base)]
        words += ["--mode", self.mode] if self.mode != "fused" else []
        words += ["--parts", self.parts] if self.parts is not None else []
        return words + (["--address", self.address] if self.address is not None else [])

    def going_on(self, counts: RunCounts, steps: int) -> dict[str, str]:
        """The command to type next, by its purpose.

        A goal that is reached is raised, since there would be nothing to do otherwise.
        """
        longer = further(self.config.goal, counts, steps)
        words = [program(), *self.command(), *goal_options(longer), *(["--tensorboard"] if self.tensorboard else [])]
        return {"train further" if longer else "go on": shlex.join(words)}


Make = Callable[[RunRequest, Display], Any]
"""Builds the loop of a request, for `launch`."""


def launch(request: RunRequest, advise: Advise, make: Make | None = None) -> int:
    """Run until the goal is reached or the user stops it; returns the exit code. `make` builds another loop."""
    from tengen.jax_setup import check_device_elsewhere, device_problem, keep_compiled

    config, notes = config_file.settled(request.config, request.base, request.overrides)
    request = replace(request, config=config)
    for note in (*notes, *_not_growing(request)):
        print(note, file=sys.stderr)
    if request.mode != "async" and (request.base / ".lock").exists():
        # A process that has this run alone is an error before JAX asks for the device's memory, which it holds.
        with lock.waiting(lambda: lock.locked(request.base, shared=True), _ENDING):
            pass
    # A device that does not work is an error before there is a run directory.
    if request.mode == "async":
        check_device_elsewhere()
    else:
        import jax

        finding = threading.Thread(target=device_problem, name="finding the device", daemon=True)
        finding.start()
        _loop_class(request)  # modules are imported meanwhile: both take seconds
        finding.join()
        keep_compiled()
        if isinstance(config, Config):
            config.train.check_devices(jax.local_device_count())
    _check_brought(request)
    with contextlib.ExitStack() as stack:
        if request.mode == "async":
            return _asynchronous(request, advise)
        if request.mode == "sync":
            for only in ("sync", "train-main", "gate"):
                stack.enter_context(locks.taking_part(request.base, only))
        else:
            stack.enter_context(lock.locked(request.base))
        _write_directory(request)
        if request.mode == "sync":
            config_file.write(request.config, request.base / "train" / "main", provenance.lines())
        return _in_one_process(request, advise, make or _make)


def _not_growing(request: RunRequest) -> Iterator[str]:
    """A note if the run's network would grow in the fused loop, but not in this mode. TengenError if it has grown."""
    config, base, mode = request.config, request.base, request.mode
    if mode == "fused" or not isinstance(config, Config):
        return
    if grown.times_grown(base / "train" / "main"):
        advice = f"leave out --mode {mode}, or begin a new run with net.start_from={base}"
        raise TengenError(
            f"{base}: its network has grown, and only the fused loop goes on with such a network: {advice}"
        )
    if config.net.growth:
        yield f"net.growth: only the fused loop grows its network; with --mode {mode} it stays {config.net.label}"


def _check_brought(request: RunRequest) -> None:
    """Before there is a run, check the user's own game and the networks that the user's functions build."""
    section = request.config.game
    if section is None or (request.base / RUN_FILE).exists():
        return

    def check(function: Callable[..., None], *arguments: Any) -> None:
        if request.mode == "async":
            from tengen.testing.games import check_elsewhere

            check_elsewhere(function, *arguments)
        else:
            function(*arguments)

    game = (section.name, asdict(section.options))
    if not games.ships(section.name):
        from tengen.testing.games import check_quickly

        check(check_quickly, *game)
    for net in first_network.sections(request.config).values():
        if (spec := net.architecture()).function is not None:
            from tengen.nets.custom import check_quickly as check_network

            check(check_network, spec.function, spec.options, list(spec.heads), net.dtype, *game)


def _write_directory(request: RunRequest) -> None:
    config_file.write(request.config, request.base, provenance.lines(), lambda change: print(change, file=sys.stderr))
    provenance.keep_changes(request.base)


def _in_one_process(request: RunRequest, advise: Advise, make: Make) -> int:
    import jax

    from tengen.jax_setup import explaining_memory

    roles = isinstance(request.config, TrainerConfig)
    memory = ("games, batch or buffer.capacity of the roles",) if roles else ()
    with _watched(request) as (shown, stopping), explaining_memory(*memory), make(request, shown) as loop:

        def left() -> None:
            """The last words of a run that was stopped while it compiled."""
            shown.close()
            print(f"go on: {shlex.join([program(), *request.command()])}")

        stopping.on_leave = left
        advise(shown.say, jax.default_backend)
        with safe_exit.possible():
            loop.prepare()
        if loop.reason:
            shown.say(f"nothing to do: {loop.reason}")
        loop.run(lambda: stopping.asked)
    commands = request.going_on(loop.counts, loop.trainer.step)
    summarise = of_roles if roles else of_loop
    return _finished(request, stopping, summarise(loop, _reason(stopping, loop.reason), commands))


def _make(request: RunRequest, shown: Display) -> Any:
    return _loop_class(request)(request.config, request.base, shown, **request.options)


def _loop_class(request: RunRequest) -> Any:
    from tengen.loop.fused import Fused
    from tengen.loop.roles import RoleRun
    from tengen.loop.sync import Sync

    if isinstance(request.config, TrainerConfig):
        return RoleRun
    return Fused if request.mode == "fused" else Sync


def _asynchronous(request: RunRequest, advise: Advise) -> int:
    from tengen.jax_setup import backend_elsewhere
    from tengen.loop import asynchronous

    assert isinstance(request.config, Config)
    parts = asynchronous.chosen(request.parts)
    variables = asynchronous.device_variables(request.config, parts)
    with contextlib.ExitStack() as stack:
        leads = _take_part(stack, request.base, joins=request.parts is not None)
        _write_directory(request)
        shown, stopping = stack.enter_context(_watched(request))
        options = {"leads": leads, "variables": variables, **request.options}
        driver = asynchronous.Asynchronous(request.config, request.base, parts, shown, **options)
        stack.enter_context(driver)
        advise(shown.say, backend_elsewhere)
        driver.run(lambda: stopping.asked)
    commands = request.going_on(driver.status.counts, driver.status.steps)
    return _finished(request, stopping, of_parts(driver, _reason(stopping, driver.reason), commands))


def _take_part(stack: contextlib.ExitStack, base: Path, joins: bool) -> bool:
    """Hold the run while the stack is open; returns whether this driver leads. One that `joins` need not."""
    try:
        stack.enter_context(locks.taking_part(base, "async"))
    except lock.InUse:
        if not joins:
            raise
        stack.enter_context(locks.taking_part(base))
        return False
    return True


@contextlib.contextmanager
def _watched(request: RunRequest) -> Iterator[tuple[Display, Stopping]]:
    """The display, and the signals that stop the run; advice if the training diverges."""
    command = [program(), *request.command()]
    with (
        advising(request.config, request.base / "train" / "main", command, list(request.overrides)),
        _display(request) as shown,
        Stopping(shown.say) as stopping,
    ):
        yield shown, stopping


def _display(request: RunRequest) -> Display:
    if not request.jsonl:
        return open_display(RunView())
    from tengen.monitor.jsonl_display import JsonlDisplay

    # Everything else that is printed, also by libraries, goes to standard error.
    lines = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return JsonlDisplay(RunView(), lines, sys.stderr, request.config.run.name)


def _reason(stopping: Stopping, reason: str) -> str:
    return f"stopped by {stopping.words}" if stopping.asked else reason


def _finished(request: RunRequest, stopping: Stopping, told: RunSummary) -> int:
    if not request.jsonl:  # people want something to look at
        # The driver of processes does without JAX, which takes a GPU's memory that others may need.
        problem = report.try_to_write(request.base, 0 if request.mode == "async" else _GAMES)
        found = {} if problem else {"the report": str(request.base / report.NAME)}
        told = replace(told, commands={**found, **told.commands})
        if problem:
            print(problem, file=sys.stderr)
    print("\n" + summary.render(told, encoding=sys.stdout.encoding if sys.stdout else None))
    return stopping.code


def of_loop(loop: Any, reason: str, commands: dict[str, str]) -> RunSummary:
    ratings, path = loop.rater.ratings, loop.network_path
    play = {} if path is None else {"play it": shlex.join([program(), "play", str(loop.base)])}
    return RunSummary(
        **_facts(loop, reason),
        table="" if ratings is None else str(ratings),
        curve=loop.rater.curve(),
        changes=changes.over_time(loop.base),
        verdict=strength_words(loop),
        network=str(path or ""),
        commands={**_chart(loop.base), **play, **commands},
    )


def of_roles(loop: Any, reason: str, commands: dict[str, str]) -> RunSummary:
    from tengen.loop.roles import results

    lines = results(loop.evaluation)
    heading = "mean result of the last evaluation (1 is the best, -1 the worst)"
    return RunSummary(
        **_facts(loop, reason),
        table="\n".join([heading, *lines]) if lines else "nothing was evaluated this time",
        network=", ".join(map(str, loop.networks)),
        commands={**_chart(loop.base), **commands},
    )


def of_parts(driver: Any, reason: str, commands: dict[str, str]) -> RunSummary:
    base, status = driver.base, driver.status
    newest, run = networks.newest(base), as_config(base)
    try:
        ratings, waiting = totals.ratings(base), networks.candidates(base)
        curve = totals.curve(base, ratings)
    except TengenError:  # `tengen status` shows it
        ratings, waiting, curve = None, [], ()
    drawn = driver.leads and not run_chart.write(base, driver.config.run.name, ratings, curve)
    found = {"the chart": str(base / run_chart.NAME)} if drawn else {}
    found["networks"] = str(status.networks or "") or "none yet"
    if waiting:
        found["judge the rest"] = shlex.join([program(), "gate", run, "--once"])
        found["play the newest"] = shlex.join([program(), "play", str(waiting[-1].path)])
    found["what there is"] = shlex.join([program(), "status", str(base)])
    if newest is not None:
        found["play it"] = shlex.join([program(), "play", str(base)])
        found["rate it"] = shlex.join([program(), "rate", str(base)])
    return RunSummary(
        name=driver.config.run.name,
        counts=status.counts,
        steps=status.steps,
        reason=reason,
        table=str(ratings) if ratings is not None else _why_no_rating(len(waiting), newest is not None),
        curve=curve,
        changes=changes.over_time(base),
        network="" if newest is None else str(newest.path),
        commands={**found, **commands},
    )


def strength_words(loop: Any) -> str:
    """How strong the network is, and what would make it stronger."""
    config, base, rated = loop.config, loop.base, loop.rater.rated()
    if loop.trainer.step == 0:
        first, rows = config.data.first_rows, loop.counts.rows
        why = f"learning begins with {first:,} rows (data.first_rows), and {rows:,} were played"
        return f"Nothing was learned yet: {why if rows < first else 'the run ended before the first step'}."
    net = config.net.grown(grown.times_grown(base / "train" / "main"))
    name, larger = strength.larger_network(net.label), ""
    with contextlib.suppress(TengenError, ValueError):
        nets.spec(name)
        # With this run's configuration, all that was --set, and its mode.
        words = [program(), "run", as_config(base), "--base", f"{base}-{name}", "--set", f"net.name={name}"]
        words += ["--set", "net.spec=null"] if config.net.spec else []
        words += ["--set", "net.growth=[]"] if config.net.growth else []
        larger = shlex.join(words)
    visits = EngineSettings().visits
    search = f"{shlex.join([program(), 'play', str(base), '--visits', str(4 * visits)])} (without --visits: {visits}"
    search += f"; in its matches: {config.rating.simulations})"
    hints = strength.hints(rated, search, larger, config.rating.references)
    text = "" if rated is None else strength.in_words(rated, loop.counts.seconds)
    return "\n".join(filter(None, (text, "To make it stronger:", *(f"  {hint}" for hint in hints))))


def _facts(loop: Any, reason: str) -> dict[str, Any]:
    return {
        "name": loop.config.run.name,
        "counts": loop.counts,
        "steps": loop.trainer.step,
        "reason": reason,
        "losses": losses(loop.figures),
    }


def _chart(base: Path) -> dict[str, str]:
    path = base / run_chart.NAME
    return {"the chart": str(path)} if path.exists() else {}


def _why_no_rating(waiting: int, accepted: bool) -> str:
    why = "the first network is accepted without a match, and no match has ended since" if accepted else ""
    left = f"{waiting} {'network waits' if waiting == 1 else 'networks wait'} for the gate" if waiting else ""
    return "; ".join(filter(None, (f"no rating: {why or 'no network was accepted yet'}", left)))
