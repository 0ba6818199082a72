"""Ratings as SVG: the networks of a run over what they learned, with error bars; anchors as lines across."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tengen.analysis.axes import Axes, wider
from tengen.analysis.drawing import Drawing

_WIDTH, _HEIGHT = 900.0, 480.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 150.0, 46.0, 56.0
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
    drawing = Drawing(_WIDTH, _HEIGHT)
    drawing.title(title)
    drawing.text(_WIDTH / 2, 20, title, 15)
    xs = [mark.x for mark in marks if mark.x is not None] or [0.0]
    panel(drawing, (_LEFT, _TOP, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM), wider(min(xs), max(xs)), across, marks)
    return drawing.to_text()


def panel(
    drawing: Drawing,
    box: tuple[float, float, float, float],
    x_range: tuple[float, float],
    across: str,
    marks: Sequence[Mark],
    words: Callable[[float], str] | None = None,
    at: Sequence[float] | None = None,
) -> None:
    """The ratings in a part of a drawing, `box` being its left, top, right and bottom; `words` and `at`: see `Axes`."""
    networks, anchors = [mark for mark in marks if mark.x is not None], [mark for mark in marks if mark.x is None]
    elos = [mark.elo for mark in marks] or [0.0]
    slack = max(50.0, 0.15 * (max(elos) - min(elos)))
    errors = [min(mark.error, 2 * slack) for mark in marks] or [0.0]
    low = min((elo - error for elo, error in zip(elos, errors, strict=False)), default=0.0)
    high = max((elo + error for elo, error in zip(elos, errors, strict=False)), default=0.0)
    axes = Axes(*box, x_range, wider(low, high))
    axes.draw(drawing, across, "Elo", words, at)
    for mark in anchors:
        y = axes.y(mark.elo)
        drawing.line(axes.left, y, axes.right, y, stroke=_RED, stroke_dasharray="6 4", kind="anchor")
        drawing.text(axes.right + 8, y, mark.name[:22], 12, text_anchor="start", fill=_RED)
    line = [(axes.x(mark.x or 0.0), axes.y(mark.elo)) for mark in networks]
    drawing.polyline(line, stroke=_BLUE, stroke_width=1.5)
    for mark, (x, y) in zip(networks, line, strict=True):
        axes.error(drawing, mark.x or 0.0, mark.elo, mark.error, _BLUE)
        drawing.circle(x, y, 4, fill=_BLUE, kind="network")
