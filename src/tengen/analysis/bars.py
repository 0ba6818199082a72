"""Moves as bars: the picture of a position in a game without a board."""

from collections.abc import Sequence
from typing import NamedTuple

from tengen.analysis.drawing import Drawing

_ROW = 24.0
_NAMES = 130.0
_WIDTH = 340.0
_MARGIN = 20.0


class Bar(NamedTuple):
    """One move."""

    name: str
    prior: float  # 0 to 1: what the policy says
    share: float | None  # 0 to 1: of the search's visits; None without a search


def draw(bars: Sequence[Bar], captions: Sequence[str] = (), title: str = "") -> str:
    """The SVG document: for each move the policy, and below it the share of the visits."""
    top = _MARGIN + _ROW * len(captions) + _ROW
    drawing = Drawing(2 * _MARGIN + _NAMES + _WIDTH + 60, top + _ROW * 1.25 * len(bars) + _MARGIN)
    if title:
        drawing.title(title)
    for number, caption in enumerate(captions):
        drawing.text(_MARGIN, _MARGIN + _ROW * (number + 0.5), caption, 13, text_anchor="start", fill="#222222")
    left = _MARGIN + _NAMES
    drawing.rectangle(left, top - _ROW + 6, 10, 10, fill="#2c6fbb")
    drawing.text(left + 16, top - _ROW + 11, "policy", 12, text_anchor="start", fill="#222222")
    if any(bar.share is not None for bar in bars):
        drawing.rectangle(left + 80, top - _ROW + 6, 10, 10, fill="#e08a1e")
        drawing.text(left + 96, top - _ROW + 11, "visits", 12, text_anchor="start", fill="#222222")
    for number, bar in enumerate(bars):
        y = top + number * 1.25 * _ROW
        drawing.text(left - 8, y + _ROW / 2, _short(bar.name), 13, text_anchor="end", fill="#222222", kind="name")
        _bar(drawing, left, y, bar.prior, "#2c6fbb", "prior")
        if bar.share is not None:
            _bar(drawing, left, y + _ROW / 2, bar.share, "#e08a1e", "visits")
    return drawing.to_text()


def _bar(drawing: Drawing, x: float, y: float, share: float, colour: str, kind: str) -> None:
    drawing.rectangle(x, y, max(_WIDTH * share, 0.5), _ROW / 2 - 1, fill=colour, kind=kind)
    drawing.text(x + _WIDTH * share + 6, y + _ROW / 4, f"{share:.1%}", 10, text_anchor="start", fill="#444444")


def _short(name: str) -> str:
    return name if len(name) <= 18 else name[:17] + "…"
