"""SVG documents, written through an XML library so that no text can break them; and charts in them."""

import math
import xml.etree.ElementTree as xml
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tengen.words import printable

# One of these is on nearly every system, and the renderer for PNG brings Roboto. Some viewers know no `sans-serif`.
_FONTS = "Roboto, 'DejaVu Sans', 'Liberation Sans', Arial, Helvetica, 'Noto Sans', sans-serif"
_TICKS = 8
_GREY, _LIGHT = "#444444", "#dddddd"


class Drawing:
    """A picture of a size in pixels. Attributes are keywords, `_` for `-`: `line(..., stroke_width=2)`.

    Two keywords are special: `kind` is what an element stands for ("stone p0"), so that programs find it, and `tip`
    is what viewers show when the mouse is on it.
    """

    def __init__(self, width: float, height: float) -> None:
        self.size = (width, height)
        self._root = xml.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "width": _number(width),
                "height": _number(height),
                "viewBox": f"0 0 {_number(width)} {_number(height)}",
                "font-family": _FONTS,
            },
        )
        self._here = self._root
        self.rectangle(0, 0, width, height, fill="#ffffff")

    def title(self, text: str) -> None:
        """What the picture shows, for those who cannot see it."""
        xml.SubElement(self._root, "title").text = printable(text)

    def rectangle(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        self._add("rect", x=x, y=y, width=width, height=height, **style)

    def circle(self, x: float, y: float, radius: float, **style: Any) -> None:
        self._add("circle", cx=x, cy=y, r=radius, **style)

    def line(self, x1: float, y1: float, x2: float, y2: float, **style: Any) -> None:
        self._add("line", x1=x1, y1=y1, x2=x2, y2=y2, **style)

    def polygon(self, points: list[tuple[float, float]], **style: Any) -> None:
        self._add("polygon", points=_points(points), **style)

    def polyline(self, points: list[tuple[float, float]], **style: Any) -> None:
        self._add("polyline", points=_points(points), fill="none", **style)

    def text(self, x: float, y: float, text: str, size: float, **style: Any) -> None:
        """Centred on (x, y) unless `text_anchor` says otherwise; `y` is the middle of the letters."""
        # A shift instead of `dominant-baseline`, which some viewers do not know.
        element = self._add(
            "text", **{"x": x, "y": y + 0.35 * size, "text_anchor": "middle", "font_size": size} | style
        )
        element.text = printable(text)

    def to_text(self) -> str:
        xml.indent(self._root, " ")
        return xml.tostring(self._root, encoding="unicode") + "\n"

    def _add(self, tag: str, **attributes: Any) -> xml.Element:
        tip = attributes.pop("tip", None)
        named = {("class" if key == "kind" else key.replace("_", "-")): value for key, value in attributes.items()}
        shown = {key: _number(value) if isinstance(value, int | float) else str(value) for key, value in named.items()}
        element = xml.SubElement(self._here, tag, shown)
        if tip is not None:
            xml.SubElement(element, "title").text = printable(tip)
        return element


def _points(points: list[tuple[float, float]]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") or "0"


@dataclass(frozen=True)
class Chart:
    """A rectangle of a drawing in which x goes from `xs[0]` to `xs[1]`, and y likewise."""

    drawing: Drawing
    box: tuple[float, float, float, float]  # left, top, right, bottom
    xs: tuple[float, float]
    ys: tuple[float, float]

    def x(self, value: float) -> float:
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
        for value, text in ({x: _axis_number(x) for x in ticks(*self.xs)} if columns is None else columns).items():
            draw.line(self.x(value), bottom, self.x(value), bottom + 5, stroke=_GREY)
            draw.text(self.x(value), bottom + 16, text, 12, fill=_GREY)

    def line(self, points: Iterable[tuple[float, float]], colour: str, **style: Any) -> None:
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


def _axis_number(x: float) -> str:
    """2500000 as `2.5M`."""
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(x) >= limit:
            return f"{x / limit:g}{letter}"
    return f"{x:g}"
