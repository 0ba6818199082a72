"""What users read when a run has ended: what was done, how strong the network became, and how to go on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tengen.monitor.run_view import loss_words
from tengen.monitor.text_chart import framed, plot
from tengen.run.changes import SettingChange
from tengen.run.goals import RunCounts
from tengen.words import clock

_LONGEST_TABLE = 16  # players
_COLUMNS, _LINES = 60, 10  # of a chart, about
_CHANGES = 9  # moments with changed settings that a chart shows
_NEEDED = "⣿┤└─"  # characters of a chart


@dataclass(frozen=True)
class RatingPoint:
    elapsed: float  # seconds of the run
    elo: float
    error: float = 0.0  # half of the 95 % interval


@dataclass(frozen=True)
class RunSummary:
    name: str
    counts: RunCounts
    steps: int
    reason: str = ""  # why it ended, as "10 minutes are over"
    losses: Mapping[str, float] = field(default_factory=dict)  # "loss" and its parts
    table: str = ""  # the players, strongest first, below a heading
    verdict: str = ""  # how strong the network is, and what would make it stronger
    curve: Sequence[RatingPoint] = ()  # of the run's own networks, in any order
    changes: Sequence[tuple[float, SettingChange]] = ()  # of settings, after so many seconds
    network: str = ""  # its path; empty if there is none yet
    commands: Mapping[str, str] = field(default_factory=dict)  # purpose -> command, as "play against it"


def render(summary: RunSummary, encoding: str | None = "utf-8") -> str:
    """The text, without a newline at its end; in ASCII if the encoding lacks the characters of charts."""
    parts = [_headline(summary), _table(summary.table) or "no match was played, so there is no rating"]
    try:
        plain = not _NEEDED.encode(encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        plain = True
    if lines := chart(summary.curve, summary.counts.seconds, plain=plain, changes=summary.changes):
        parts.append("\n".join(("rating over time (Elo)", *lines)))
    parts += [summary.verdict, _where(summary)]
    return "\n\n".join(filter(None, parts))


def numbered(changes: Sequence[tuple[float, SettingChange]]) -> dict[str, tuple[float, str]]:
    """The newest changes of settings, numbered for a chart: when and which; those of one moment together."""
    found: dict[str, tuple[float, list[str]]] = {}
    for elapsed, change in changes:
        found.setdefault(change.time, (elapsed, []))[1].append(str(change))
    newest = list(found.values())[-_CHANGES:]
    return {str(number): (elapsed, ", ".join(words)) for number, (elapsed, words) in enumerate(newest, 1)}


def chart(
    points: Sequence[RatingPoint],
    elapsed: float = 0.0,
    *,
    plain: bool = False,
    changes: Sequence[tuple[float, SettingChange]] = (),
) -> list[str]:
    """Lines of text: the ratings joined by a line, with error bars, from the beginning of the run.

    It ends at `elapsed`, or with the last rating if that is later. Changes of settings are numbered below the axis.
    """
    points = sorted((p for p in points if math.isfinite(p.elo) and 0 <= p.elapsed < math.inf), key=lambda p: p.elapsed)
    if not points:
        return []
    end = max(points[-1].elapsed, elapsed) or 1.0
    ticks = _ticks(*_range(points))
    apart = max(1, _LINES // (len(ticks) - 1))  # lines from tick to tick
    labels = {apart * number: f"{tick:,}" for number, tick in enumerate(reversed(ticks))}
    curve = [(p.elapsed, p.elo) for p in points]
    bars = [(p.elapsed, p.elo + p.error, p.elo - p.error) for p in points if p.error > 0]
    x, y, rows = (0.0, end), (ticks[0], ticks[-1]), apart * (len(ticks) - 1) + 1
    first, middle, last = clock(0), clock(end / 2), clock(end)
    times = f"{first}{middle:^{_COLUMNS - len(first) - len(last)}}{last}"
    lines = framed(plot(curve, _COLUMNS, rows, x, y, bars=bars, plain=plain), labels, times, plain=plain)
    columns = numbered(changes)
    marks = [" "] * (_COLUMNS + 1)
    for number, (when, _) in columns.items():
        marks[round((_COLUMNS - 1) * min(when / end, 1.0))] = number
    margin = " " * (max(map(len, labels.values())) + 2)
    found = [f"{number}: {clock(when)}  {words}" for number, (when, words) in columns.items()]
    return [*lines, margin + "".join(marks).rstrip(), *found] if found else lines


def _headline(summary: RunSummary) -> str:
    counts = summary.counts
    done = f"{counts.games:,} games, {counts.rows:,} rows, {summary.steps:,} steps in {clock(counts.seconds)}"
    line = f"{summary.name}: {done}" + (f" ({summary.reason})" if summary.reason else "")
    losses = loss_words(summary.losses)
    return f"{line}\nloss {losses}" if losses else line


def _table(table: str) -> str:
    """The table; a long one is cut to the strongest players and the weakest, which are usually the references."""
    lines = table.splitlines()
    extra = len(lines) - 1 - _LONGEST_TABLE
    if extra > 0:
        lines[_LONGEST_TABLE - 4 : -4] = [f"... {extra + 1} more ..."]
    return "\n".join(lines)


def _where(summary: RunSummary) -> str:
    rows = {"the network": summary.network, **summary.commands}
    width = max(map(len, rows)) + 1
    return "\n".join(f"{what + ':':<{width}} {text}" for what, text in rows.items() if text)


def _range(points: Sequence[RatingPoint]) -> tuple[float, float]:
    """The lowest and the highest Elo to show; error bars that are far longer than the curve is high are cut."""
    elos = [point.elo for point in points]
    most = max(100.0, max(elos) - min(elos))
    errors = [min(point.error, most) if point.error > 0 else 0.0 for point in points]
    ends = [elo + sign * error for elo, error in zip(elos, errors, strict=True) for sign in (-1, 1)]
    return min(ends), max(ends)


def _ticks(low: float, high: float) -> list[int]:
    """Round numbers, at least two, the first and the last of them around the given range."""
    span = max(high - low, 10.0)
    power = 10 ** math.floor(math.log10(span / 5))
    step = next(step for factor in (1, 2, 5, 10) if span / (step := max(10, power * factor)) <= 5)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [step * number for number in range(first, max(last, first + 1) + 1)]
