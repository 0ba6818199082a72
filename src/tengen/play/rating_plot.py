"""Ratings as SVG: the networks of a run over what they learned, with error bars; anchors as lines across."""

import math
import xml.etree.ElementTree as xml
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_WIDTH, _HEIGHT = 900.0, 480.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 150.0, 46.0, 56.0
_TICKS = 8


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

    root = xml.Element(
        "svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", width=f"{_WIDTH:g}",
        height=f"{_HEIGHT:g}", attrib={"font-family": "'DejaVu Sans', Arial, sans-serif", "font-size": "12"},
    )  # fmt: skip
    xml.SubElement(root, "title").text = _printable(title)
    _add(root, "rect", x=0, y=0, width=_WIDTH, height=_HEIGHT, fill="#ffffff")
    _text(root, _WIDTH / 2, 24, title, size=15)
    _text(root, (_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 14, across)
    _text(root, 24, _TOP - 16, "Elo")
    for elo in _ticks(*y_range):
        y = place_y(elo)
        _add(root, "line", x1=_LEFT, y1=y, x2=_WIDTH - _RIGHT, y2=y, stroke="#dddddd")
        _text(root, _LEFT - 8, y + 4, f"{elo:g}", anchor="end")
    for x in _ticks(*x_range):
        _add(root, "line", x1=place_x(x), y1=_HEIGHT - _BOTTOM, x2=place_x(x), y2=_HEIGHT - _BOTTOM + 5, stroke="#444")
        _text(root, place_x(x), _HEIGHT - _BOTTOM + 19, _short(x))
    for mark in anchors:
        y = place_y(mark.elo)
        _add(root, "line", x1=_LEFT, y1=y, x2=_WIDTH - _RIGHT, y2=y, stroke="#c0392b", dash="6 4", kind="anchor")
        _text(root, _WIDTH - _RIGHT + 8, y + 4, mark.name[:22], anchor="start", fill="#c0392b")
    line = " ".join(f"{place_x(mark.x or 0.0):.2f},{place_y(mark.elo):.2f}" for mark in networks)
    _add(root, "polyline", points=line, fill="none", stroke="#1f4e8c", width=1.5)
    for mark in networks:
        x, y = place_x(mark.x or 0.0), place_y(mark.elo)
        top, bottom = place_y(mark.elo + mark.error), place_y(mark.elo - mark.error)
        _add(root, "line", x1=x, y1=top, x2=x, y2=bottom, stroke="#1f4e8c", kind="error")
        dot = _add(root, "circle", cx=x, cy=y, r=4, fill="#1f4e8c", kind="network")
        xml.SubElement(dot, "title").text = _printable(f"{mark.name}: {mark.elo:.0f} +- {mark.error:.0f}")
    xml.indent(root, " ")
    return xml.tostring(root, encoding="unicode") + "\n"


def _add(root: xml.Element, tag: str, **attributes: Any) -> xml.Element:
    names = {"kind": "class", "dash": "stroke-dasharray"} | ({"width": "stroke-width"} if tag == "polyline" else {})
    shown = {names.get(key, key): f"{x:.2f}" if isinstance(x, float) else str(x) for key, x in attributes.items()}
    return xml.SubElement(root, tag, shown)


def _text(
    root: xml.Element, x: float, y: float, text: str, anchor: str = "middle", size: int = 12, fill: str = "#222222"
) -> None:
    attributes = {"x": f"{x:.2f}", "y": f"{y:.2f}", "text-anchor": anchor, "font-size": str(size), "fill": fill}
    xml.SubElement(root, "text", attributes).text = _printable(text)


def _printable(text: str) -> str:
    """XML has no way to say control characters."""
    return "".join(character if character.isprintable() else " " for character in text)


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
