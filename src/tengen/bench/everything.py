"""`tengen bench all`: one process after the other, each for at most its share of the time, and a table for people.

A process that is slow, fails or crashes costs its own figures only. This process does not touch JAX, which would take
memory of the device that the others measure.
"""

import contextlib
import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import IO, Any

import tengen
from tengen import schema
from tengen.bench import parts
from tengen.bench.figures import RATIO, BenchReport, Figure, FigureChange, Machine, changes
from tengen.bench.parts import LEFT_OUT, BenchPart
from tengen.errors import TengenError
from tengen.words import counted, duration, short_clock

_MACHINE_SECONDS = 120.0  # to find the device
_TAIL = 4096  # bytes of a process's other output that are shown if it crashes
Clock = Callable[[], float]


@dataclass(frozen=True)
class Doing:
    part: str
    words: str


@dataclass(frozen=True)
class Skipped:
    """A benchmark that was not measured, or not as a whole."""

    part: str
    why: str
    failed: bool = False  # not for want of time or of a device


Event = Figure | Doing | Skipped


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "tengen.bench.child", *words]


def machine() -> Machine:
    """What there is to measure. Raises TengenError if JAX cannot compute."""
    with tempfile.TemporaryFile() as output:
        for message in _messages(command(), time.monotonic() + _MACHINE_SECONDS, output, time.monotonic):
            if "machine" in message:
                return schema.from_data(Machine, message["machine"])
        raise TengenError(f"bench all: no device was found: {_last_words(output)}")


def measure(
    chosen: Sequence[BenchPart],
    here: Machine,
    seconds: float,
    make_command: Callable[..., list[str]] = command,
    now: Clock = time.monotonic,
) -> Iterator[Event]:
    """Everything that happens, as it happens, in about `seconds`."""
    possible = []
    for part in chosen:
        if obstacle := part.obstacle(here):
            yield Skipped(part.name, obstacle)
        else:
            possible.append(part)
    end = now() + seconds
    figures: list[Figure] = []
    for number, part in enumerate(possible):
        allowed = parts.seconds_left(max(end - now(), 0.0), part, possible[number + 1 :], here)
        yield Doing(part.name, f"starting, at most {duration(allowed)}")
        words = make_command(part.name, json.dumps(asdict(here)))
        for event in _of_part(part, words, allowed, now):
            figures += [event] if isinstance(event, Figure) else []
            yield event
    yield from parts.derived(figures)


def _of_part(part: BenchPart, words: list[str], allowed: float, now: Clock) -> Iterator[Event]:
    doing, failed = "", False
    with (
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryDirectory(prefix="tengen-bench-", ignore_cleanup_errors=True) as scratch,
    ):
        messages = _messages(words, now() + allowed, output, now, {"TMPDIR": scratch})
        while True:
            try:
                message = next(messages)
            except StopIteration as ended:
                code = ended.value
                break
            if "figure" in message:
                yield schema.from_data(Figure, message["figure"])
            elif "doing" in message:
                doing = message["doing"]
                yield Doing(part.name, doing)
            elif "error" in message:
                failed = True
                yield Skipped(part.name, message["error"], failed=True)
        if code is None:
            yield Skipped(part.name, f"stopped after {duration(allowed)}, measuring {doing or 'nothing yet'}")
        elif code and not (failed and code == 1):  # an error that was told ends it with code 1
            yield Skipped(part.name, f"ended with code {code}: {_last_words(output)}", failed=True)


def _messages(
    words: list[str], end: float, output: IO[bytes], now: Clock, environment: Mapping[str, str] = MappingProxyType({})
) -> Generator[Any, None, int | None]:
    """The messages of a process; returns its exit code, or None if it was killed at the `end`.

    It is in a new session: what it starts is killed with it. `environment` has variables besides those of this process.
    """
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": output, "stdin": subprocess.DEVNULL}
    process = subprocess.Popen(words, **streams, start_new_session=True, env={**os.environ, **environment})
    assert process.stdout is not None
    lines: queue.Queue[bytes] = queue.Queue()

    def read(stream: IO[bytes]) -> None:
        for line in itertools.chain(stream, [b""]):
            lines.put(line)

    reader = threading.Thread(target=read, args=(process.stdout,), daemon=True)
    reader.start()
    try:
        while True:
            try:
                line = lines.get(timeout=max(end - now(), 0.0))
            except queue.Empty:
                return None
            if not line:
                return process.wait()
            with contextlib.suppress(ValueError):
                yield json.loads(line)
    finally:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        reader.join(5.0)
        process.stdout.close()


def _last_words(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(size - _TAIL, 0))
    lines = [line.strip() for line in output.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it printed nothing"


_NAME = 62  # characters


class BenchTable:
    """Collects what happens, and puts it into lines."""

    def __init__(self, machine: Machine, before: BenchReport | None, now: Callable[[], float] = time.monotonic) -> None:
        self._machine, self._before, self._now = machine, before, now
        self._began = now()
        self._figures: dict[str, Figure] = {}
        self._skipped: list[Skipped] = []

    @property
    def failed(self) -> bool:
        """Whether a measurement failed for another reason than the time or the machine."""
        return any(each.failed for each in self._skipped)

    def head(self) -> Iterator[str]:
        here, before = self._machine, self._before
        devices = here.device if here.count == 1 else f"{here.count} x {here.device}"
        yield f"Tengen {tengen.__version__} on {devices}, JAX {here.jax}"
        if before is None:
            yield f"there are no stored figures of {here.device} to compare with"
        else:
            yield f"stored: {before.date or 'an unknown day'}, {before.machine.device}, JAX {before.machine.jax}"
            if here.backend == "cpu":
                yield "only ratios are compared: CPUs differ"
        yield f"{'figure':<{_NAME}}{'now':>13}{'stored':>13}{'gain':>8}"

    def doing(self, event: Event) -> str:
        return f"{event.part}: {event.words} ..." if isinstance(event, Doing) else "measuring ..."

    def add(self, event: Event) -> list[str]:
        """Record an event; returns the lines to print for it."""
        if isinstance(event, Figure):
            self._figures[event.name] = event
            return [self._row(event)]
        if isinstance(event, Skipped):
            self._skipped.append(event)
            return [f"{event.part}: {event.why}"]
        return []

    def report(self) -> BenchReport:
        missing: dict[str, str] = {}
        for each in self._skipped:
            missing[each.part] = f"{missing[each.part]}; {each.why}" if each.part in missing else each.why
        return BenchReport(
            *(self._machine, tuple(self._figures.values()), missing, tengen.__version__),
            date=datetime.now(UTC).strftime("%Y-%m-%d"),
            seconds=round(self._now() - self._began, 1),
        )

    def summary(self, whole: bool) -> Iterator[str]:
        """What changed, and what was not measured; `whole` if nothing was left out by the user."""
        report = self.report()
        yield ""
        yield f"{counted(len(report.figures), 'figure')} in {short_clock(report.seconds)}"
        found = changes(report, self._before)
        for verdict in ("worse", "better"):
            these = [change for change in found.values() if change.verdict == verdict]
            if these:
                yield f"{verdict} than stored by more than the noise: {len(these)} of {len(found)}"
                yield from (f"  {change.now.name}: {_words(change)}" for change in these)
        if found and not any(change.verdict for change in found.values()):
            yield f"none of {len(found)} compared figures changed by more than its noise"
        if whole:
            names = {figure.name for figure in self._before.figures} if self._before else set()
            if absent := sorted(names - set(self._figures)):
                yield "stored, but not measured now: " + "; ".join(absent)
            yield "in docs/performance.md, but not measured by this command: " + "; ".join(
                f"{name} ({why})" for name, why in LEFT_OUT.items()
            )

    def _row(self, figure: Figure) -> str:
        change = changes(BenchReport(self._machine, (figure,)), self._before).get(figure.name)
        row = f"{figure.name:<{_NAME}}{_number(figure):>13}"
        if change is None:
            return row
        mark = f"  {change.verdict}" if change.verdict else ""
        return f"{row}{_number(change.before):>13}{change.gain:>7.2f}x{mark}"


def _number(figure: Figure) -> str:
    if figure.unit == RATIO:
        return f"{figure.value:.3f}" if figure.value < 2 else f"{figure.value:.2f} x"
    unit = "/s" if figure.unit.endswith("/s") and figure.unit != "TFLOP/s" else figure.unit
    return f"{figure.value:,.{1 if figure.value < 1000 else 0}f} {unit}"


def _words(change: FigureChange) -> str:
    moved = f"{_number(change.before)} -> {_number(change.now)}"
    return f"{moved} ({change.gain:.2f} times as good, noise {change.noise:.0%})"
