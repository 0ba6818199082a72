"""The course of a run as a picture, RUN/chart.svg: losses and ratings over time.

Written anew at every rating and at the end; as RUN/chart.png too where the libraries for that are there.
"""

import contextlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tengen.analysis import rating_chart, saving
from tengen.analysis.axes import Axes
from tengen.analysis.drawing import Drawing
from tengen.analysis.rating_chart import Mark
from tengen.errors import TengenError
from tengen.match.ratings import Ratings
from tengen.monitor.summary import RatingPoint
from tengen.run import metrics
from tengen.words import clock

NAME = "chart.svg"
_WIDTH, _PANEL, _TOP = 900.0, 300.0, 40.0
_LEFT, _RIGHT, _ABOVE, _BELOW = 70.0, 150.0, 36.0, 56.0
_COLOURS = ("#222222", "#1f4e8c", "#c0392b", "#2e8b57", "#b8860b", "#7d3c98", "#16a085", "#888888")
_LEVELS = 9  # lines across
_POINTS = 600  # of a line; more would not be seen
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)  # seconds


def write(base: Path, name: str, ratings: Ratings | None = None, curve: Sequence[RatingPoint] = ()) -> str:
    """Draw the run in `base`; what went wrong, in words, since no run should end for want of a picture."""
    try:
        found = metrics.read(base / metrics.NAME)
        svg = draw(name, losses(found.lines), ratings, curve)
        saving.save_picture(base / NAME, svg)
        with contextlib.suppress(TengenError):  # without the libraries the SVG is all there is
            saving.save_picture((base / NAME).with_suffix(".png"), svg)
    except TengenError as error:
        return f"the chart was not drawn: {error}"
    return ""


def losses(lines: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    """{name: [(seconds, value), ...]}: the loss and its parts, as the metrics of a run have them."""
    found: dict[str, list[tuple[float, float]]] = {}
    for line in lines:
        if line["kind"] != "progress":
            continue
        parts, loss = line.get("losses"), line.get("loss")
        if loss is None:  # a ring's driver tells what its trainer said
            loss = _inner(line, "parts", "train main", "figures", "loss")
        for name, value in {"loss": loss, **(parts if isinstance(parts, dict) else {})}.items():
            if isinstance(value, int | float) and 0 < value < math.inf:
                found.setdefault(name, []).append((float(line["elapsed"]), float(value)))
    return found


def draw(
    name: str,
    lines: Mapping[str, Sequence[tuple[float, float]]],
    ratings: Ratings | None = None,
    curve: Sequence[RatingPoint] = (),
) -> str:
    """The SVG document: a panel for the losses and, if there are any, one for the ratings."""
    panels = 2 if curve else 1
    drawing = Drawing(_WIDTH, _TOP + panels * _PANEL)
    title = f"{name}: losses and ratings" if curve else f"{name}: losses"
    drawing.title(title)
    drawing.text(_WIDTH / 2, 20, title, 15)
    end = max([1.0, *(x for points in lines.values() for x, _ in points), *(point.elapsed for point in curve)])
    if curve:
        box = (_LEFT, _TOP + _ABOVE, _WIDTH - _RIGHT, _TOP + _PANEL - _BELOW)
        marks = [Mark("", point.elo, point.error, point.elapsed) for point in curve]
        marks += [Mark(one.name, one.elo, 0.0, None) for one in ratings.players if _fixed(one.name)] if ratings else []
        about = "time; bars hold 95 %, compared with the other players"
        rating_chart.panel(drawing, box, (0.0, 1.02 * end), about, marks, clock, _times(end))
    _draw_losses(drawing, lines, _TOP + (panels - 1) * _PANEL, end)
    return drawing.to_text()


def _draw_losses(drawing: Drawing, lines: Mapping[str, Sequence[tuple[float, float]]], top: float, end: float) -> None:
    values = sorted(value for points in lines.values() for _, value in points)
    box = (_LEFT, top + _ABOVE, _WIDTH - _RIGHT, top + _PANEL - _BELOW)
    if not values:
        drawing.text((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, "nothing was learned yet", 14, fill="#444444")
    # A few wild values at the beginning must not flatten all others.
    low, high = (values[0], values[min(len(values) - 1, math.ceil(0.99 * len(values)))]) if values else (1.0, 1.0)
    ends = _log(low) - 0.02, max(_log(high), _log(low) + 0.1) + 0.02
    axes = Axes(*box, (0.0, 1.02 * end), ends)
    axes.draw(drawing, "time", "loss (logarithmic)", clock, _times(end), _levels(*ends))
    for number, (name, points) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        shown = points[:: max(1, math.ceil(len(points) / _POINTS))]
        if shown[-1] != points[-1]:
            shown = [*shown, points[-1]]
        places = [(axes.x(x), axes.y(_log(value))) for x, value in shown]
        drawing.polyline(places, stroke=colour, stroke_width=1.5, kind="loss")
        if len(places) == 1:
            drawing.circle(*places[0], 3, fill=colour, kind="loss")
        below = axes.top + 8 + 18 * number
        drawing.line(axes.right + 10, below, axes.right + 28, below, stroke=colour, stroke_width=2)
        drawing.text(axes.right + 34, below, name[:16], 12, text_anchor="start", fill=colour)


def _log(value: float) -> float:
    """Parts of a loss differ by orders of magnitude, and all of them should be seen to fall."""
    return math.log10(max(value, 1e-9))


def _levels(low: float, high: float) -> dict[float, str]:
    """Round values between two logarithms, at most nine."""
    for digits in ((1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        powers = range(math.floor(low), math.ceil(high) + 1)
        found = {math.log10(digit) + power: f"{digit * 10.0**power:g}" for power in powers for digit in digits}
        found = {level: text for level, text in found.items() if low <= level <= high}
        if len(found) <= _LEVELS:
            break
    return found


def _inner(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _fixed(name: str) -> bool:
    return name == "random" or name.startswith("mcts:")


def _times(end: float) -> list[float]:
    """Round times of day's units up to the end, at most nine."""
    step = next((step for step in _STEPS if end / step <= 8), None)
    if step is None:
        step = 86400 * math.ceil(end / 8 / 86400)
    return [float(step * number) for number in range(int(end / step) + 1)]
