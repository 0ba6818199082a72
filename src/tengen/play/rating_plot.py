"""Ratings as SVG: the networks of a run over what they learned, with error bars; anchors as lines across."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tengen.play.looking.drawing import Drawing

_WIDTH, _HEIGHT = 900.0, 480.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 150.0, 46.0, 56.0
_TICKS = 8
_BLUE, _RED = "#1f4e8c", "#c0392b"


@dataclass(frozen=True)
class Mark:
    """One player."""

    name: str
    elo: float
    error: float
    x: float | None  # None: an anchor


def draw(title: str, across: str, marks: Sequence[Mark]) -> str:
    """The SVG document; `across` says what x is."""
    networks, anchors = [mark for mark in marks if mark.x is not None], [mark for mark in marks if mark.x is None]
    xs = [mark.x for mark in networks if mark.x is not None] or [0.0]
    x_range = _wider(min(xs), max(xs))
    elos = [mark.elo for mark in marks] or [0.0]
    slack = max(50.0, 0.15 * (max(elos) - min(elos)))
    errors = [min(mark.error, 2 * slack) for mark in marks] or [0.0]
    low = min((elo - error for elo, error in zip(elos, errors, strict=False)), default=0.0)
    high = max((elo + error for elo, error in zip(elos, errors, strict=False)), default=0.0)
    y_range = _wider(low, high)

    def place_x(x: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (x - x_range[0]) / (x_range[1] - x_range[0])

    def place_y(elo: float) -> float:
        elo = min(max(elo, y_range[0]), y_range[1])
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (y_range[1] - elo) / (y_range[1] - y_range[0])

    drawing = Drawing(_WIDTH, _HEIGHT)
    drawing.title(title)
    drawing.text(_WIDTH / 2, 20, title, 15)
    drawing.text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 16, across, 12)
    drawing.text(24, _TOP - 20, "Elo", 12)
    for elo in _ticks(*y_range):
        y = place_y(elo)
        drawing.line(_LEFT, y, _WIDTH - _RIGHT, y, stroke="#dddddd")
        drawing.text(_LEFT - 8, y, f"{elo:g}", 12, text_anchor="end")
    for x in _ticks(*x_range):
        drawing.line(place_x(x), _HEIGHT - _BOTTOM, place_x(x), _HEIGHT - _BOTTOM + 5, stroke="#444444")
        drawing.text(place_x(x), _HEIGHT - _BOTTOM + 16, _short(x), 12)
    for mark in anchors:
        y = place_y(mark.elo)
        drawing.line(_LEFT, y, _WIDTH - _RIGHT, y, stroke=_RED, stroke_dasharray="6 4", kind="anchor")
        drawing.text(_WIDTH - _RIGHT + 8, y, mark.name[:22], 12, text_anchor="start", fill=_RED)
    drawing.polyline([(place_x(mark.x or 0.0), place_y(mark.elo)) for mark in networks], stroke=_BLUE, stroke_width=1.5)
    for mark in networks:
        x = place_x(mark.x or 0.0)
        drawing.line(x, place_y(mark.elo + mark.error), x, place_y(mark.elo - mark.error), stroke=_BLUE, kind="error")
        drawing.circle(x, place_y(mark.elo), 4, fill=_BLUE, kind="network")
    return drawing.to_text()


def _wider(low: float, high: float) -> tuple[float, float]:
    """A little more room on both sides."""
    slack = 0.05 * (high - low) or 1.0
    return low - slack, high + slack


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers in between, at most _TICKS of them."""
    rough = (high - low) / _TICKS
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * n for n in (1, 2, 5, 10) if unit * n >= rough)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _short(x: float) -> str:
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(x) >= limit:
            return f"{x / limit:g}{letter}"
    return f"{x:g}"
