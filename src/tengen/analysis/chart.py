"""A chart in a drawing: two axes with round numbers, lines, points, error bars and a legend."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tengen.analysis.drawing import Drawing

_TICKS = 8
_GREY, _LIGHT = "#444444", "#dddddd"


@dataclass(frozen=True)
class Chart:
    """A rectangle of a drawing in which x goes from `xs[0]` to `xs[1]`, and y likewise."""

    drawing: Drawing
    box: tuple[float, float, float, float]  # left, top, right, bottom
    xs: tuple[float, float]
    ys: tuple[float, float]

    def x(self, value: float) -> float:
        """The place of a value in the drawing."""
        left, _, right, _ = self.box
        return left + (right - left) * (value - self.xs[0]) / (self.xs[1] - self.xs[0])

    def y(self, value: float) -> float:
        """The place of a value in the drawing; values outside are moved to the edge."""
        _, top, _, bottom = self.box
        value = min(max(value, self.ys[0]), self.ys[1])
        return top + (bottom - top) * (self.ys[1] - value) / (self.ys[1] - self.ys[0])

    def axes(
        self,
        across: str,
        up: str,
        columns: Mapping[float, str] | None = None,
        levels: Mapping[float, str] | None = None,
    ) -> None:
        """Draw the axes, named `across` and `up`; `columns` and `levels` label other values than round ones."""
        left, top, right, bottom = self.box
        draw = self.drawing
        draw.text((left + right) / 2, bottom + 34, across, 12, fill=_GREY)
        draw.text(left - 46, top - 20, up, 12, text_anchor="start", fill=_GREY)
        for value, text in ({y: f"{y:g}" for y in ticks(*self.ys)} if levels is None else levels).items():
            draw.line(left, self.y(value), right, self.y(value), stroke=_LIGHT)
            draw.text(left - 8, self.y(value), text, 12, text_anchor="end", fill=_GREY)
        for value, text in ({x: short(x) for x in ticks(*self.xs)} if columns is None else columns).items():
            draw.line(self.x(value), bottom, self.x(value), bottom + 5, stroke=_GREY)
            draw.text(self.x(value), bottom + 16, text, 12, fill=_GREY)

    def line(self, points: Iterable[tuple[float, float]], colour: str, **style: Any) -> None:
        """Connect these values."""
        places = [(self.x(x), self.y(y)) for x, y in points]
        self.drawing.polyline(places, **{"stroke": colour, "stroke_width": 1.5} | style)

    def level(self, value: float, name: str, colour: str, **style: Any) -> None:
        """A dashed line across the chart, named on its right."""
        left, _, right, _ = self.box
        y = self.y(value)
        self.drawing.line(left, y, right, y, stroke=colour, stroke_dasharray="6 4", **style)
        self.drawing.text(right + 8, y, name, 12, text_anchor="start", fill=colour)

    def column(self, value: float, name: str, colour: str, **style: Any) -> None:
        """A dashed line up the chart, named at its top if it has a name."""
        _, top, _, bottom = self.box
        x = self.x(value)
        self.drawing.line(x, top, x, bottom, stroke=colour, stroke_dasharray="2 3", **style)
        if name:
            self.drawing.text(x, top - 7, name, 11, fill=colour)

    def point(self, x: float, y: float, radius: float, colour: str, error: float | None = None, **style: Any) -> None:
        """A dot, with a bar from `y - error` to `y + error`."""
        if error is not None:
            at = self.x(x)
            self.drawing.line(at, self.y(y + error), at, self.y(y - error), stroke=colour, kind="error")
        self.drawing.circle(self.x(x), self.y(y), radius, fill=colour, **style)

    def legend(self, number: int, name: str, colour: str) -> None:
        """The name of a line, in the margin on the right."""
        _, top, right, _ = self.box
        y = top + 8 + 18 * number
        self.drawing.line(right + 10, y, right + 28, y, stroke=colour, stroke_width=2)
        self.drawing.text(right + 34, y, name, 12, text_anchor="start", fill=colour)


def titled(width: float, height: float, title: str) -> Drawing:
    """An empty drawing with its title at the top."""
    drawing = Drawing(width, height)
    drawing.title(title)
    drawing.text(width / 2, 20, title, 15)
    return drawing


def wider(values: Sequence[float]) -> tuple[float, float]:
    """The range of some values, with a little room on both sides."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    slack = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - slack, high + slack


def ticks(low: float, high: float) -> list[float]:
    """Round numbers in between, at most _TICKS of them."""
    rough = (high - low) / _TICKS
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * n for n in (1, 2, 5, 10) if unit * n >= rough)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def short(x: float) -> str:
    """2500000 as `2.5M`."""
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(x) >= limit:
            return f"{x / limit:g}{letter}"
    return f"{x:g}"
