"""SVG documents, written through an XML library so that no text can break them."""

import xml.etree.ElementTree as xml
from typing import Any

from tengen.words import printable

# One of these is on nearly every system, and the renderer for PNG brings Roboto. Some viewers know no `sans-serif`.
_FONTS = "Roboto, 'DejaVu Sans', 'Liberation Sans', Arial, Helvetica, 'Noto Sans', sans-serif"


class Drawing:
    """A picture of a size in pixels. Attributes are keywords, `_` for `-`: `line(..., stroke_width=2)`.

    Two keywords are special: `kind` is what an element stands for ("stone p0"), so that programs find it, and `tip`
    is what viewers show when the mouse is on it.
    """

    def __init__(self, width: float, height: float, background: str = "#ffffff") -> None:
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
        self.rectangle(0, 0, width, height, fill=background)

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
        """The SVG document."""
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
