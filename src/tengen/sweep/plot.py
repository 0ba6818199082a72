"""The results of a sweep as a picture (SVG): a panel for each setting, and one for the rounds if there are several."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from tengen.analysis.drawing import Drawing
from tengen.sweep.report import ReportRow, SweepReport, placed, short_names, value_words

_WIDTH, _HEIGHT = 360, 260  # of a panel
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 30, 40
_ACROSS = 3  # panels in a row
_POINT, _BEST, _LINE, _INK = "#4878a8", "#c8502c", "#9ab4cc", "#333333"
_LETTERS = 11  # size of all words
_LONGEST = 14  # characters of a label


def svg(report: SweepReport) -> str:
    """The whole picture; with words alone if nothing has a score yet."""
    rows = [row for row in report.rows if row.score is not None]
    keys = list(zip(report.keys, short_names(report.keys), strict=True)) if rows else []
    rounds = any(len(row.history) > 1 for row in report.rows)
    count = max(len(keys) + rounds, 1)
    width, height = min(count, _ACROSS) * _WIDTH, -(-count // _ACROSS) * _HEIGHT
    drawing = Drawing(width, height)
    drawing.title(f"{report.metric} of {len(rows)} trials")
    places = [(n % _ACROSS * _WIDTH, n // _ACROSS * _HEIGHT) for n in range(count)]
    for (key, name), place in zip(keys, places, strict=False):
        _setting(drawing, place, rows, key, name, report)
    if rounds:
        _rounds(drawing, places[-1], report)
    elif not keys:
        drawing.text(width / 2, height / 2, "no trial has a score yet", _LETTERS, fill=_INK)
    return drawing.to_text()


@dataclass(frozen=True)
class _Panel:
    """One of the charts: where it is in the picture, and what its axes mean."""

    drawing: Drawing
    left: float
    top: float
    ends: tuple[float, float]  # of the vertical axis

    def x(self, place: float) -> float:
        """Of 0 to 1, in the picture."""
        return self.left + _LEFT + 10 + place * (_WIDTH - _LEFT - _RIGHT - 20)

    def y(self, value: float) -> float:
        low, high = self.ends
        return self.top + _TOP + (high - value) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    def frame(self, across: str, up: str) -> None:
        width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        self.drawing.rectangle(self.left + _LEFT, self.top + _TOP, width, height, fill="none", stroke="#bbbbbb")
        self._text(_LEFT + width / 2, _HEIGHT - 12, across)
        self._text(_LEFT + width / 2, _TOP - 14, up)
        for share in (0, 0.5, 1):
            value = self.ends[0] + (self.ends[1] - self.ends[0]) * share
            self._text(_LEFT - 6, self.y(value) - self.top, f"{value:.4g}", text_anchor="end")

    def labels(self, marks: dict[float, str]) -> None:
        """Words below the axis, at places from 0 to 1, as far as there is room."""
        for place in _apart(sorted(marks)):
            self._text(self.x(place) - self.left, _HEIGHT - _BOTTOM + 10, marks[place])

    def _text(self, x: float, y: float, words: str, **style: str) -> None:
        cut = words if len(words) <= 40 else words[:37] + "..."
        self.drawing.text(self.left + x, self.top + y, cut, _LETTERS, fill=_INK, **style)


def _setting(
    drawing: Drawing, at: tuple[float, float], rows: Sequence[ReportRow], key: str, name: str, report: SweepReport
) -> None:
    """Score against one setting; numbers in proportion, anything else side by side."""
    written = [row.settings[key] for row in rows]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in written):
        places = placed([float(value) for value in written])
    else:
        kinds = sorted({json.dumps(value) for value in written})
        places = [(kinds.index(json.dumps(value)) + 0.5) / len(kinds) for value in written]
    scores = [row.score.value for row in rows if row.score is not None]
    panel = _Panel(drawing, *at, _ends(scores))
    panel.frame(name, report.metric)
    for place, score, row in zip(places, scores, rows, strict=True):
        words = ", ".join(f"{k}={value_words(v)}" for k, v in row.settings.items())
        x = panel.x(place)
        if row.score is not None and row.score.error is not None:
            high, low = min(score + row.score.error, panel.ends[1]), max(score - row.score.error, panel.ends[0])
            drawing.line(x, panel.y(high), x, panel.y(low), stroke=_LINE)
        tip = f"trial {row.trial}: {score:.4g} ({words})"
        drawing.circle(x, panel.y(score), 4, fill=_colour(report, row, _POINT), tip=tip)
    panel.labels({round(place, 3): value_words(value) for place, value in zip(places, written, strict=True)})


def _rounds(drawing: Drawing, at: tuple[float, float], report: SweepReport) -> None:
    """Score against budget, a line for each trial."""
    points = [point for row in report.rows for point in row.history]
    budgets = sorted({float(budget) for budget, _ in points})
    place_of = dict(zip(budgets, placed(budgets), strict=True))
    panel = _Panel(drawing, *at, _ends([score for _, score in points]))
    panel.frame(report.unit or "budget", report.metric)
    for row in reversed(report.rows):
        colour, tip = _colour(report, row, _LINE), f"trial {row.trial}"
        corners = [(panel.x(place_of[float(budget)]), panel.y(score)) for budget, score in row.history]
        drawing.polyline(corners, stroke=colour, tip=tip)
        for corner in corners:
            drawing.circle(*corner, 3, fill=colour, tip=tip)
    panel.labels({place: f"{budget:.4g}" for budget, place in place_of.items()})


def _colour(report: SweepReport, row: ReportRow, usual: str) -> str:
    return _BEST if report.best is not None and row.trial == report.best.trial else usual


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """The range of the vertical axis, a little more than the values'."""
    low, high = min(values), max(values)
    margin = 0.08 * (high - low) or max(abs(high) * 0.05, 1e-6)
    return low - margin, high + margin


def _apart(places: Sequence[float]) -> list[float]:
    """Those that leave room for a label each."""
    room = 7 * _LONGEST / 2 / (_WIDTH - _LEFT - _RIGHT)
    kept: list[float] = []
    for place in places:
        if not kept or place - kept[-1] >= room:
            kept.append(place)
    return kept
