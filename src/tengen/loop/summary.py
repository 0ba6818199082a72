"""What a person reads when a run has ended: what was done, how strong the network became, and how to go on.

    print(summary.render(Summary(...), encoding=sys.stdout.encoding))

Reads nothing itself.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tengen.loop.dots import braille, letters, lines_between
from tengen.loop.progress import clock, loss_words

_LONGEST_TABLE = 16  # players
_COLUMNS, _LINES = 60, 10  # of a chart, about
_NEEDED = "⣿┤└─"  # what a chart is made of


@dataclass(frozen=True)
class Point:
    """A rating and when it was measured."""

    elapsed: float  # seconds of the run
    elo: float


@dataclass(frozen=True)
class Summary:
    """A run that has ended."""

    name: str
    elapsed: float  # seconds
    games: int
    rows: int
    steps: int
    reason: str = ""  # why it ended, as "10 minutes are over"
    loss: float | None = None
    losses: Mapping[str, float] = field(default_factory=dict)
    table: str = ""  # the players, the strongest first, below a heading: str(arena.Ratings)
    curve: Sequence[Point] = ()  # the run's own networks, in any order
    network: str = ""  # where it is; empty if there is none yet
    commands: Mapping[str, str] = field(default_factory=dict)  # what for -> command, as "play against it"


def render(summary: Summary, encoding: str | None = "utf-8") -> str:
    """The text, without a newline at its end; letters and lines only if the encoding has nothing better."""
    parts = [_headline(summary), _table(summary.table) or "no match was played, so there is no rating"]
    if lines := chart(summary.curve, plain=not can_show(encoding)):
        parts.append("\n".join(("rating over time (Elo)", *lines)))
    parts.append(_where(summary))
    return "\n\n".join(filter(None, parts))


def can_show(encoding: str | None) -> bool:
    """Whether an encoding has the characters that charts are drawn with."""
    try:
        _NEEDED.encode(encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def chart(points: Sequence[Point], *, plain: bool = False) -> list[str]:
    """Lines of text: the ratings joined by a line, from the beginning of the run. None for fewer than two ratings."""
    points = sorted((p for p in points if math.isfinite(p.elo) and 0 <= p.elapsed < math.inf), key=lambda p: p.elapsed)
    if len(points) < 2:
        return []
    end = points[-1].elapsed or 1.0
    ticks = _ticks(min(p.elo for p in points), max(p.elo for p in points))
    low, high = ticks[0], ticks[-1]
    apart = max(1, _LINES // (len(ticks) - 1))  # lines from tick to tick
    columns, rows = _COLUMNS, apart * (len(ticks) - 1) + 1
    across, down = (columns, rows) if plain else (2 * columns, 4 * rows)
    dots = lines_between([((across - 1) * p.elapsed / end, (down - 1) * (high - p.elo) / (high - low)) for p in points])
    body = letters(dots, columns, rows) if plain else braille(dots, columns, rows)
    labels = {apart * number: f"{tick:,}" for number, tick in enumerate(reversed(ticks))}
    width = max(map(len, labels.values()))
    tick, side, corner, floor = "+|+-" if plain else "┤│└─"
    lines = [
        f"{labels.get(row, ''):>{width}} {tick if row in labels else side}{text}".rstrip()
        for row, text in enumerate(body)
    ]
    return [*lines, " " * (width + 1) + corner + floor * columns, " " * (width + 2) + _times(end, columns)]


def _headline(summary: Summary) -> str:
    done = f"{summary.games:,} games, {summary.rows:,} rows, {summary.steps:,} steps in {clock(summary.elapsed)}"
    line = f"{summary.name}: {done}" + (f" ({summary.reason})" if summary.reason else "")
    losses = loss_words(summary.loss, summary.losses)
    return f"{line}\nloss {losses}" if losses else line


def _table(table: str) -> str:
    """The table; of a long one the strongest players and the weakest, which are the fixed ones most of the time."""
    lines = table.splitlines()
    extra = len(lines) - 1 - _LONGEST_TABLE
    if extra > 0:
        lines[_LONGEST_TABLE - 4 : -4] = [f"... {extra + 1} more ..."]
    return "\n".join(lines)


def _where(summary: Summary) -> str:
    rows = {"the network": summary.network, **summary.commands}
    width = max(map(len, rows)) + 1
    return "\n".join(f"{what + ':':<{width}} {text}" for what, text in rows.items() if text)


def _ticks(low: float, high: float) -> list[int]:
    """Round numbers, at least two, the first and the last of them around the given range."""
    span = max(high - low, 10.0)
    power = 10 ** math.floor(math.log10(span / 5))
    step = next(step for factor in (1, 2, 5, 10) if span / (step := max(10, power * factor)) <= 5)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [step * number for number in range(first, max(last, first + 1) + 1)]


def _times(end: float, columns: int) -> str:
    """The beginning, the middle and the end of the time axis."""
    first, middle, last = clock(0), clock(end / 2), clock(end)
    return f"{first}{middle:^{columns - len(first) - len(last)}}{last}"
