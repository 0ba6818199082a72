"""The course of a run as a picture, RUN/chart.svg: losses and ratings over time. Also the ratings alone."""

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen.analysis import saving
from tengen.analysis.drawing import Chart, Drawing, titled, wider
from tengen.errors import TengenError
from tengen.match.ratings import Ratings, is_reference
from tengen.monitor import totals
from tengen.monitor.summary import RatingPoint, numbered
from tengen.run import changes, metrics
from tengen.run.changes import SettingChange
from tengen.words import clock

NAME = "chart.svg"
_WIDTH, _PANEL, _TOP = 900.0, 300.0, 40.0
_ALONE = 480.0  # the height of a chart of ratings alone
_LEFT, _RIGHT, _ABOVE, _BELOW = 70.0, 150.0, 36.0, 56.0
_COLOURS = ("#222222", "#1f4e8c", "#c0392b", "#2e8b57", "#b8860b", "#7d3c98", "#16a085", "#888888")
_NETWORK, _ANCHOR = _COLOURS[1], _COLOURS[2]
_CHANGE = "#b8860b"
_LINE = 18.0  # the height of an explained change
_APART = 24.0  # lines of changes that are closer have one name
_LONGEST = 120  # characters of it
_LEVELS = 9  # lines across
_POINTS = 600  # of a line; more would not be seen
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)  # seconds


@dataclass(frozen=True)
class RatingMark:
    name: str
    elo: float
    error: float
    x: float | None  # None: an anchor


def write(base: Path, name: str, ratings: Ratings | None = None, curve: Sequence[RatingPoint] = ()) -> str:
    """Draw the run in `base`. Returns an error message rather than raising: a chart must not end a run."""
    try:
        found = metrics.read(base / metrics.NAME)
        svg = draw(name, losses(found.lines), ratings, curve, changes.over_time(base))
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
        for name, value in totals.losses(line).items():
            if 0 < value < math.inf:
                found.setdefault(name, []).append((float(line["elapsed"]), float(value)))
    return found


def draw(
    name: str,
    lines: Mapping[str, Sequence[tuple[float, float]]],
    ratings: Ratings | None = None,
    curve: Sequence[RatingPoint] = (),
    changed: Sequence[tuple[float, SettingChange]] = (),
) -> str:
    """The SVG document: a panel for the losses and, if there are any, one for the ratings.

    Changes of settings are numbered lines up both panels, which are explained below.
    """
    panels = 2 if curve else 1
    title = f"{name}: losses and ratings" if curve else f"{name}: losses"
    columns = numbered(changed)
    height = _TOP + panels * _PANEL
    drawing = titled(_WIDTH, height + _LINE * len(columns), title)
    for number, (text, (elapsed, words)) in enumerate(columns.items()):
        line = f"{text}: {clock(elapsed)}  {words}"
        drawing.text(_LEFT, height + _LINE * (number + 0.5), line[:_LONGEST], 12, text_anchor="start", fill=_CHANGE)
    end = max([1.0, *(x for points in lines.values() for x, _ in points), *(point.elapsed for point in curve)])
    times = {x: clock(x) for x in _times(end)}
    if curve:
        marks = [RatingMark("", point.elo, point.error, point.elapsed) for point in curve]
        references = [one for one in ratings.players if is_reference(one.name)] if ratings else []
        marks += [RatingMark(one.name, one.elo, 0.0, None) for one in references]
        about = "time; bars hold 95 %, compared with the other players"
        _draw_ratings(drawing, _box(_TOP, _PANEL), (0.0, 1.02 * end), about, marks, times)
    _draw_losses(drawing, _box(_TOP + (panels - 1) * _PANEL, _PANEL), (0.0, 1.02 * end), lines, times)
    for panel in range(panels):
        chart = Chart(drawing, _box(_TOP + panel * _PANEL, _PANEL), (0.0, 1.02 * end), (0.0, 1.0))
        at = {text: min(elapsed, end) for text, (elapsed, _) in columns.items()}
        names = _names({text: chart.x(value) for text, value in at.items()})
        for text, value in at.items():
            chart.column(value, names.get(text, ""), _CHANGE, kind="change")
    return drawing.to_text()


def draw_ratings(title: str, across: str, marks: Sequence[RatingMark]) -> str:
    """The SVG document of ratings alone; `across` names x."""
    drawing = titled(_WIDTH, _ALONE, title)
    xs = wider([mark.x for mark in marks if mark.x is not None])
    _draw_ratings(drawing, _box(10.0, _ALONE - 10.0), xs, across, marks)
    return drawing.to_text()


def _names(places: Mapping[str, float]) -> dict[str, str]:
    """What stands above numbered lines at these places: "2", or "2-4" above the first of those that are close."""
    groups: list[list[str]] = []
    for text, x in places.items():
        if groups and abs(x - places[groups[-1][-1]]) < _APART:
            groups[-1].append(text)
        else:
            groups.append([text])
    return {group[0]: "-".join(dict.fromkeys((group[0], group[-1]))) for group in groups}


def _box(top: float, height: float) -> tuple[float, float, float, float]:
    return _LEFT, top + _ABOVE, _WIDTH - _RIGHT, top + height - _BELOW


def _draw_ratings(
    drawing: Drawing,
    box: tuple[float, float, float, float],
    xs: tuple[float, float],
    across: str,
    marks: Sequence[RatingMark],
    columns: Mapping[float, str] | None = None,
) -> None:
    """Networks as points with error bars, anchors as lines across."""
    elos = [mark.elo for mark in marks] or [0.0]
    widest = 2 * max(50.0, 0.15 * (max(elos) - min(elos)))  # a huge error must not flatten all others
    ends = [mark.elo + sign * min(mark.error, widest) for mark in marks for sign in (-1, 1)]
    chart = Chart(drawing, box, xs, wider(ends))
    chart.axes(across, "Elo", columns)
    for mark in marks:
        if mark.x is None:
            chart.level(mark.elo, mark.name[:22], _ANCHOR, kind="anchor")
    networks = [(mark.x, mark) for mark in marks if mark.x is not None]
    chart.line(((x, mark.elo) for x, mark in networks), _NETWORK)
    for x, mark in networks:
        chart.point(x, mark.elo, 4, _NETWORK, mark.error, kind="network")


def _draw_losses(
    drawing: Drawing,
    box: tuple[float, float, float, float],
    xs: tuple[float, float],
    lines: Mapping[str, Sequence[tuple[float, float]]],
    columns: Mapping[float, str],
) -> None:
    values = sorted(value for points in lines.values() for _, value in points)
    if not values:
        drawing.text((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, "nothing was learned yet", 14, fill="#444444")
    # A few wild values at the beginning must not flatten all others.
    low, high = (values[0], values[min(len(values) - 1, math.ceil(0.99 * len(values)))]) if values else (1.0, 1.0)
    ends = _log(low) - 0.02, max(_log(high), _log(low) + 0.1) + 0.02
    chart = Chart(drawing, box, xs, ends)
    chart.axes("time", "loss (logarithmic)", columns, _levels(*ends))
    for number, (name, points) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        shown = [*points[: -1 : max(1, math.ceil(len(points) / _POINTS))], points[-1]]
        chart.line(((x, _log(value)) for x, value in shown), colour, kind="loss")
        if len(shown) == 1:
            chart.point(shown[0][0], _log(shown[0][1]), 3, colour, kind="loss")
        chart.legend(number, name[:16], colour)


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


def _times(end: float) -> list[float]:
    """Round times up to the end, at most nine."""
    step = next((step for step in _STEPS if end / step <= 8), None)
    if step is None:
        step = 86400 * math.ceil(end / 8 / 86400)
    return [float(step * number) for number in range(int(end / step) + 1)]
