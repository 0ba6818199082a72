"""Bars, charts and fitted text for panes. Any number can be drawn, even NaN."""

import math
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from tengen.monitor.dashboard.model import clean
from tengen.monitor.text_chart import plot

GOOD, WARM, BAD, DIM = "green", "yellow", "bold red", "dim"


def figure(value: float | None) -> str:
    """A loss, with four significant digits."""
    if value is None:
        return ""
    return f"{value:.4g}" if math.isfinite(value) else "?"


def fit(text: str, width: int, right: bool = False) -> str:
    """Exactly `width` columns; text that is too long gets an ellipsis at its end, or at its beginning if `right`."""
    text = text.replace("\n", " ")
    if cell_len(text) <= width:
        pad = " " * (width - cell_len(text))
        return pad + text if right else text + pad
    if width < 2:
        return text[:width]
    return set_cell_size(text, width - 1) + "…" if not right else "…" + text[-(width - 1) :]


def harmless(text: Text, between: str = "\n") -> Text:
    """Without control characters that would move the terminal's cursor; `between` joins lines."""
    parts = text.plain.split("\n")
    cleaned = [clean(part) for part in parts]
    return text if parts == cleaned and (len(parts) == 1 or between == "\n") else Text(between.join(cleaned))


def bar(done: float, width: int, style: str = GOOD) -> Text:
    share = min(max(done, 0.0), 1.0) if math.isfinite(done) else 0.0
    halves = int(2 * max(width, 0) * share + 1e-9)
    full = "━" * (halves // 2) + "╸" * (halves % 2)
    return Text.assemble((full, style), ("─" * (max(width, 0) - len(full)), DIM))


def share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def labelled(label: str, done: float | None, words: str, width: int, style: str = GOOD) -> Text:
    """`label ━━━━──── words`, one line; without a bar if there is no share or no room."""
    name = fit(label, 9)
    room = width - len(name) - cell_len(words) - 1
    if done is None or room < 3:
        return Text(fit(f"{name}{words}", width))
    return Text.assemble(name, bar(done, room, style), " ", words)


def chart(points: Sequence[tuple[float, float]], width: int, height: int) -> list[str]:
    """A line through the points as text, with the largest and the smallest value at the left."""
    points = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
    if len(points) < 2 or height < 2 or width < 16:
        return []
    low, high = min(y for _, y in points), max(y for _, y in points)
    labels = {0: figure(high), height - 1: figure(low)}
    edge = max(map(len, labels.values()))
    columns = width - edge - 1
    body = plot(points, columns, height, (points[0][0], points[-1][0]), (low, high))
    return [f"{labels.get(row, ''):>{edge}}│{text}" for row, text in enumerate(body)]
