"""`tengen bench all` for people: a row for each figure next to the stored one, and what changed."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import tengen
from tengen.bench.everything import Doing, Event, Skipped
from tengen.bench.figures import RATIO, BenchReport, Change, Figure, Machine, changes
from tengen.bench.parts import LEFT_OUT
from tengen.words import counted, short_clock

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
        """What is being done now."""
        return f"{event.part}: {event.words} ..." if isinstance(event, Doing) else "measuring ..."

    def add(self, event: Event) -> list[str]:
        """The lines that an event adds."""
        if isinstance(event, Figure):
            self._figures[event.name] = event
            return [self._row(event)]
        if isinstance(event, Skipped):
            self._skipped.append(event)
            return [f"{event.part}: {event.why}"]
        return []

    def report(self) -> BenchReport:
        """All that was measured so far."""
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


def _words(change: Change) -> str:
    moved = f"{_number(change.before)} -> {_number(change.now)}"
    return f"{moved} ({change.gain:.2f} times as good, noise {change.noise:.0%})"
