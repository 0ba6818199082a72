"""A pair of axes in a drawing: where a value lies, round numbers along both sides."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tengen.analysis.drawing import Drawing

_TICKS = 8


@dataclass(frozen=True)
class Axes:
    """A rectangle of a drawing in which x goes from `xs[0]` to `xs[1]`, and y likewise."""

    left: float
    top: float
    right: float
    bottom: float
    xs: tuple[float, float]
    ys: tuple[float, float]

    def x(self, value: float) -> float:
        """Where that is in the drawing."""
        return self.left + (self.right - self.left) * (value - self.xs[0]) / (self.xs[1] - self.xs[0])

    def y(self, value: float) -> float:
        """Where that is in the drawing; what lies outside is moved to the edge."""
        value = min(max(value, self.ys[0]), self.ys[1])
        return self.top + (self.bottom - self.top) * (self.ys[1] - value) / (self.ys[1] - self.ys[0])

    def draw(
        self,
        drawing: Drawing,
        across: str,
        up: str,
        words: Callable[[float], str] | None = None,
        at: Sequence[float] | None = None,
        levels: Mapping[float, str] | None = None,
    ) -> None:
        """Lines and numbers; `across` and `up` say what they are.

        `words` writes x, `at` says which; `levels` are the values of y to mark, with what to write there.
        """
        drawing.text((self.left + self.right) / 2, self.bottom + 40, across, 12)
        drawing.text(24, self.top - 20, up, 12, text_anchor="start")
        for value, text in ({y: f"{y:g}" for y in ticks(*self.ys)} if levels is None else levels).items():
            drawing.line(self.left, self.y(value), self.right, self.y(value), stroke="#dddddd")
            drawing.text(self.left - 8, self.y(value), text, 12, text_anchor="end")
        for value in ticks(*self.xs) if at is None else at:
            drawing.line(self.x(value), self.bottom, self.x(value), self.bottom + 5, stroke="#444444")
            drawing.text(self.x(value), self.bottom + 16, (words or short)(value), 12)

    def error(self, drawing: Drawing, x: float, value: float, error: float, colour: str) -> None:
        """A bar from `value - error` to `value + error`."""
        across = self.x(x)
        drawing.line(across, self.y(value + error), across, self.y(value - error), stroke=colour, kind="error")


def wider(low: float, high: float) -> tuple[float, float]:
    """A little more room on both sides."""
    slack = 0.05 * (high - low) or 1.0
    return low - slack, high + slack


def ticks(low: float, high: float) -> list[float]:
    """Round numbers in between, at most _TICKS of them."""
    rough = (high - low) / _TICKS
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * n for n in (1, 2, 5, 10) if unit * n >= rough)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def short(x: float) -> str:
    """2.5M"""
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(x) >= limit:
            return f"{x / limit:g}{letter}"
    return f"{x:g}"
