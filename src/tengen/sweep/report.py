"""The results of a sweep: a table, the best first, the effect of each setting, a picture, and what users see meanwhile.

On a terminal the table is kept up to date below the messages; elsewhere there are only the messages.
"""

import contextlib
import json
import math
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.text import Text

from tengen.analysis.drawing import Chart, Drawing, wider
from tengen.config.source import RUN_FILE
from tengen.monitor.display import View, open_display
from tengen.monitor.text_chart import framed, plot
from tengen.run import metrics
from tengen.run.metrics import is_number
from tengen.sweep.driver import Driver, figure
from tengen.sweep.folder import SweepFolder
from tengen.sweep.scoring import TrialScore, comparable
from tengen.sweep.strategies import Number
from tengen.words import figure as rounded
from tengen.words import program

_BAR, _FEW = 30, 8  # characters of a bar; values of a setting that get one each
_COLUMNS, _LINES = 60, 10  # of a chart


@dataclass(frozen=True)
class ReportRow:
    trial: str
    settings: Mapping[str, Any]
    score: TrialScore | None
    status: str  # waiting, running, done, failed
    round: int  # the last that it took part in, from 1
    budget: Number | None  # up to that
    source: str | None  # the trial that it began as a copy of
    why: str  # it failed
    values: Mapping[str, float | None]
    history: tuple[tuple[Number, float], ...]  # budget and score (in the metric's unit) of each round


@dataclass(frozen=True)
class SweepReport:
    """All trials, the best first: by how far they came, then by score."""

    metric: str
    highest: bool
    strategy: str
    unit: str | None
    rows: tuple[ReportRow, ...]

    @property
    def best(self) -> ReportRow | None:
        return next((row for row in self.rows if row.score is not None), None)

    @property
    def keys(self) -> list[str]:
        return list(self.rows[0].settings) if self.rows else []


def make(driver: Driver) -> SweepReport:
    plan, results, scores = driver.planned.plan, driver.results(), driver.scores()
    sign = 1 if plan.highest else -1
    rows: dict[str, ReportRow] = {}
    for number, each in enumerate(driver.rounds):
        for job in each.jobs:
            before = rows.get(job.trial)
            result, score = results.get(job.trial), (each.scores or {}).get(job.trial)
            step = ((job.budget, sign * score),) if score is not None and job.budget is not None else ()
            ended = driver.result(job, number) is not None
            rows[job.trial] = ReportRow(
                job.trial,
                job.settings,
                scores.get(job.trial),
                "running" if job.trial in driver.running else result.status if result and ended else "waiting",
                number + 1,
                job.budget,
                job.source or (before.source if before else None),
                result.why if result and ended else "",
                result.values if result else {},
                (*(before.history if before else ()), *step),
            )
    order = comparable(scores, plan.highest)
    ranked = sorted(rows.values(), key=lambda row: (-row.round, -order.get(row.trial, -float("inf")), row.trial))
    return SweepReport(plan.metric, plan.highest, plan.strategy, plan.unit, tuple(ranked))


def table(report: SweepReport) -> str:
    """Aligned text, a line for each trial."""
    names = short_names(report.keys)
    decides = report.strategy in ("halving", "population")
    copied = any(row.source for row in report.rows)
    heading = ["trial", *names, report.metric, "steps", "games", "minutes"]
    heading += (["round"] if decides else []) + (["from"] if copied else []) + [""]
    lines = [heading]
    for row in report.rows:
        cells = [row.trial, *(value_words(row.settings[key]) for key in report.keys)]
        cells.append(figure(row.score) if row.score else "-")
        steps, games, elapsed = (row.values.get(f"progress.{name}") for name in ("steps", "games", "elapsed"))
        cells += ["" if count is None else f"{count:,.0f}" for count in (steps, games)]
        cells.append(f"{elapsed / 60:.1f}" if elapsed is not None else "")
        cells += ([str(row.round)] if decides else []) + ([row.source or ""] if copied else [])
        cells.append(row.status if not row.why else f"{row.status}: {row.why[:60]}")
        lines.append(cells)
    widths = [max(len(line[column]) for line in lines) for column in range(len(heading))]
    last = len(heading) - 1
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in (0, last) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def effects(report: SweepReport) -> str:
    """The effect of each setting: bars for a few values, dots for many."""
    scored = [row for row in report.rows if row.score is not None]
    if len(scored) < 2:
        return ""
    parts = []
    for key, name in zip(report.keys, short_names(report.keys), strict=True):
        values = list(dict.fromkeys(json.dumps(row.settings[key]) for row in scored))
        if len(values) < 2:
            continue
        numbers = all(is_number(row.settings[key]) for row in scored)
        lines = _dots(scored, key) if numbers and len(values) > _FEW else _bars(scored, key, values, report.highest)
        parts.append("\n".join([f"{report.metric} by {name}", *lines]))
    return "\n\n".join(parts)


def values(report: SweepReport) -> dict[str, Any]:
    trials = [asdict(row) | {"settings": dict(row.settings), "values": dict(row.values)} for row in report.rows]
    return {name: getattr(report, name) for name in ("metric", "highest", "strategy", "unit")} | {"trials": trials}


def ending(report: SweepReport, driver: Driver) -> str:
    best = report.best
    if best is None:
        return "no trial has a score"
    folder = driver.folder.trial(best.trial)
    job = next(job for each in reversed(driver.rounds) for job in each.jobs if job.trial == best.trial)
    sets = [f"--set={text}" for text in driver.planned.overrides(job, driver.rounds[0])]
    again = shlex.join([program(), "run", str(driver.folder.path / RUN_FILE), *sets])
    settings = ", ".join(f"{key}={value_words(value)}" for key, value in best.settings.items())
    return "\n".join(
        [f"best:      trial {best.trial} ({settings})", f"its run:   {folder}", f"run anew:  {again} --base RUN"]
    )


def short_names(keys: Sequence[str]) -> list[str]:
    """The last parts of names, as long as they differ."""
    lasts = [key.rpartition(".")[2] for key in keys]
    return [last if lasts.count(last) == 1 else key for key, last in zip(keys, lasts, strict=True)]


def value_words(value: Any) -> str:
    """A setting for people."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value)


def _bars(rows: Sequence[ReportRow], key: str, written: Sequence[str], highest: bool) -> list[str]:
    by_value: dict[str, list[float]] = {text: [] for text in written}
    for row in rows:
        if row.score is not None:
            by_value[json.dumps(row.settings[key])].append(row.score.value)
    found = [(json.loads(text), scores) for text, scores in by_value.items()]
    if all(is_number(value) for value, _ in found):
        found.sort(key=lambda pair: pair[0])
    means = [sum(scores) / len(scores) for _, scores in found]
    low, high = min(means), max(means)
    width = max(len(value_words(value)) for value, _ in found)
    lines = []
    for (value, scores), mean in zip(found, means, strict=True):
        best = max(scores) if highest else min(scores)
        bar = "#" * round(1 + (_BAR - 1) * ((mean - low) / (high - low) if high > low else 1))
        figures = f"mean {mean:>9.4g}  best {best:>9.4g}  of {len(scores):>3}"
        lines.append(f"  {value_words(value):>{width}}  {figures}  {bar}")
    return lines


def _dots(rows: Sequence[ReportRow], key: str) -> list[str]:
    points = [(float(row.settings[key]), row.score.value) for row in rows if row.score is not None]
    places = placed([x for x, _ in points])
    low, high = min(y for _, y in points), max(y for _, y in points)
    dots = [(place, y) for place, (_, y) in zip(places, points, strict=True)]
    body = plot(dots, _COLUMNS, _LINES, (0.0, 1.0), (low, high), joined=False, plain=True)
    first, last = (f"{end(x for x, _ in points):.4g}" for end in (min, max))
    labels = {0: f"{high:.4g}", _LINES - 1: f"{low:.4g}"}
    return framed(body, labels, f"{first}{last:>{_COLUMNS - len(first)}}", plain=True)


def placed(numbers: Sequence[float]) -> list[float]:
    """Numbers between 0 and 1 in proportion, or in proportion to their logarithms if they span more than a decade."""
    low, high = min(numbers), max(numbers)
    scale = math.log if low > 0 and high / low > 10 else float
    first, last = scale(low), scale(high)
    return [(scale(number) - first) / (last - first) if last > first else 0.5 for number in numbers]


_WIDTH, _HEIGHT = 360, 280  # of a panel
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 36, 50
_ACROSS = 3  # panels in a row
_POINT, _BEST, _LINE = "#4878a8", "#c8502c", "#9ab4cc"
_LABEL = 0.18  # of the width of a panel


def svg(report: SweepReport) -> str:
    """The whole picture; only a note if nothing has a score yet."""
    rows = [row for row in report.rows if row.score is not None]
    keys = list(zip(report.keys, short_names(report.keys), strict=True)) if rows else []
    rounds = any(len(row.history) > 1 for row in report.rows)
    count = max(len(keys) + rounds, 1)
    width, height = min(count, _ACROSS) * _WIDTH, -(-count // _ACROSS) * _HEIGHT
    drawing = Drawing(width, height)
    drawing.title(f"{report.metric} of {len(rows)} trials")
    places = [(n % _ACROSS * _WIDTH, n // _ACROSS * _HEIGHT) for n in range(count)]
    for (key, name), place in zip(keys, places, strict=False):
        _setting(drawing, place, report, key, name)
    if rounds:
        _rounds(drawing, places[-1], report)
    elif not keys:
        drawing.text(width / 2, height / 2, "no trial has a score yet", 12)
    return drawing.to_text()


def _panel(
    drawing: Drawing, at: tuple[int, int], scores: Iterable[float], words: tuple[str, str], columns: Mapping[float, str]
) -> Chart:
    """A chart with an x axis from 0 to 1, with as many labels as fit, and a y axis over all scores."""
    (left, top), (low, high) = at, wider(list(scores))
    box = (left + _LEFT, top + _TOP, left + _WIDTH - _RIGHT, top + _HEIGHT - _BOTTOM)
    chart = Chart(drawing, box, (-0.04, 1.04), (low, high))
    shown: dict[float, str] = {}
    for place in sorted(columns):
        if not shown or place - max(shown) >= _LABEL:
            shown[place] = columns[place][:14]
    levels = {value: f"{value:.4g}" for value in (low, (low + high) / 2, high)}
    chart.axes(words[0][:40], words[1][:40], shown, levels)
    return chart


def _setting(drawing: Drawing, at: tuple[int, int], report: SweepReport, key: str, name: str) -> None:
    """Score against one setting; numbers to scale, other values side by side."""
    scored = [(row, row.score) for row in report.rows if row.score is not None]
    written = [row.settings[key] for row, _ in scored]
    if all(map(is_number, written)):
        places = placed([float(value) for value in written])
    else:
        kinds = sorted({json.dumps(value) for value in written})
        places = [(kinds.index(json.dumps(value)) + 0.5) / len(kinds) for value in written]
    columns = {place: value_words(value) for place, value in zip(places, written, strict=True)}
    chart = _panel(drawing, at, [score.value for _, score in scored], (name, report.metric), columns)
    for place, (row, score) in zip(places, scored, strict=True):
        words = ", ".join(f"{k}={value_words(v)}" for k, v in row.settings.items())
        tip = f"trial {row.trial}: {score.value:.4g} ({words})"
        chart.point(place, score.value, 4, _colour(report, row, _POINT), score.error, tip=tip)


def _rounds(drawing: Drawing, at: tuple[int, int], report: SweepReport) -> None:
    points = [point for row in report.rows for point in row.history]
    budgets = sorted({float(budget) for budget, _ in points})
    place_of = dict(zip(budgets, placed(budgets), strict=True))
    columns = {place: f"{budget:.4g}" for budget, place in place_of.items()}
    words = (report.unit or "budget", report.metric)
    chart = _panel(drawing, at, [score for _, score in points], words, columns)
    for row in reversed(report.rows):
        colour, tip = _colour(report, row, _LINE), f"trial {row.trial}"
        corners = [(place_of[float(budget)], score) for budget, score in row.history]
        chart.line(corners, colour, tip=tip)
        for corner in corners:
            chart.point(*corner, 3, colour, tip=tip)


def _colour(report: SweepReport, row: ReportRow, usual: str) -> str:
    return _BEST if report.best is not None and row.trial == report.best.trial else usual


_LEFT_OVER = 4  # lines of a terminal that the table leaves free


def publish(folder: SweepFolder, found: SweepReport) -> None:
    text = "\n\n".join(filter(None, (table(found), effects(found))))
    folder.write("table.txt", text + "\n")
    folder.write("results.json", json.dumps(values(found), indent=1) + "\n")
    folder.write("plot.svg", svg(found))


class SweepView(View):
    """The table of trials, and the progress of those that are running."""

    def __init__(self) -> None:
        self._table: list[str] = []
        self._running: tuple[tuple[str, Path], ...] = ()

    def update(self, state: Driver) -> None:
        found = make(state)
        publish(state.folder, found)
        self._table = table(found).splitlines()
        self._running = tuple((trial, state.folder.trial(trial)) for trial in sorted(state.running))

    def lines(self, *, last: bool = False) -> tuple[str, ...]:
        return ()

    def draw(self) -> "SweepView":
        return self

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows, running = self._table, self._running
        room = max(console.size.height - _LEFT_OVER - len(running), 2)
        if len(rows) > room:
            rows = [*rows[: room - 1], f"... {len(rows) - room + 1} more"]
        lines = [*rows, *(f"{trial}: {standing(folder)}" for trial, folder in running)]
        yield Group(*(Text(line, no_wrap=True, overflow="ellipsis") for line in lines))


def standing(folder: Path) -> str:
    """The progress of a run according to its newest metrics, in words."""
    line = metrics.last(folder / metrics.NAME)
    if line is None:
        return "starting"
    words = [f"{line['elapsed'] / 60:.1f} minutes"]
    if line["kind"] == "progress":
        words += [f"{line[name]:,} {name}" for name in ("games", "steps") if isinstance(line.get(name), int)]
        if isinstance(loss := line.get("loss"), float):
            words.append(f"loss {rounded(loss)}")
    return ", ".join(words)


@contextlib.contextmanager
def screen(driver: Driver, stream: TextIO | None) -> Iterator[Callable[[str], None]]:
    """Show the driver's work while this is open; yields a function that prints a message with the time."""
    display = open_display(SweepView(), stream, beat=1.0, transient=True)  # the results are printed at the end

    def say(text: str) -> None:
        display.say(f"{time.strftime('%H:%M:%S')} {text}")

    driver.listen(say, lambda: display.update(driver))
    display.update(driver)
    with display:
        yield say
