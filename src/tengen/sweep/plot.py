"""The results of a sweep as a picture (SVG): a panel for each setting, and one for the rounds if there are several."""

import json
from collections.abc import Iterable, Mapping

from tengen.analysis.drawing import Chart, Drawing, wider
from tengen.sweep.report import ReportRow, SweepReport, placed, short_names, value_words

_WIDTH, _HEIGHT = 360, 280  # of a panel
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 36, 50
_ACROSS = 3  # panels in a row
_POINT, _BEST, _LINE = "#4878a8", "#c8502c", "#9ab4cc"
_LABEL = 0.18  # of the width of a panel


def svg(report: SweepReport) -> str:
    """The whole picture; only a note if nothing has a score yet."""
    rows = [row for row in report.rows if row.score is not None]
    keys = list(zip(report.keys, short_names(report.keys), strict=True)) if rows else []
    rounds = any(len(row.history) > 1 for row in report.rows)
    count = max(len(keys) + rounds, 1)
    width, height = min(count, _ACROSS) * _WIDTH, -(-count // _ACROSS) * _HEIGHT
    drawing = Drawing(width, height)
    drawing.title(f"{report.metric} of {len(rows)} trials")
    places = [(n % _ACROSS * _WIDTH, n // _ACROSS * _HEIGHT) for n in range(count)]
    for (key, name), place in zip(keys, places, strict=False):
        _setting(drawing, place, report, key, name)
    if rounds:
        _rounds(drawing, places[-1], report)
    elif not keys:
        drawing.text(width / 2, height / 2, "no trial has a score yet", 12)
    return drawing.to_text()


def _panel(
    drawing: Drawing, at: tuple[int, int], scores: Iterable[float], words: tuple[str, str], columns: Mapping[float, str]
) -> Chart:
    """A chart with an x axis from 0 to 1, with as many labels as fit, and a y axis over all scores."""
    (left, top), (low, high) = at, wider(list(scores))
    box = (left + _LEFT, top + _TOP, left + _WIDTH - _RIGHT, top + _HEIGHT - _BOTTOM)
    chart = Chart(drawing, box, (-0.04, 1.04), (low, high))
    shown: dict[float, str] = {}
    for place in sorted(columns):
        if not shown or place - max(shown) >= _LABEL:
            shown[place] = columns[place][:14]
    levels = {value: f"{value:.4g}" for value in (low, (low + high) / 2, high)}
    chart.axes(words[0][:40], words[1][:40], shown, levels)
    return chart


def _setting(drawing: Drawing, at: tuple[int, int], report: SweepReport, key: str, name: str) -> None:
    """Score against one setting; numbers to scale, other values side by side."""
    scored = [(row, row.score) for row in report.rows if row.score is not None]
    written = [row.settings[key] for row, _ in scored]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in written):
        places = placed([float(value) for value in written])
    else:
        kinds = sorted({json.dumps(value) for value in written})
        places = [(kinds.index(json.dumps(value)) + 0.5) / len(kinds) for value in written]
    columns = {place: value_words(value) for place, value in zip(places, written, strict=True)}
    chart = _panel(drawing, at, [score.value for _, score in scored], (name, report.metric), columns)
    for place, (row, score) in zip(places, scored, strict=True):
        words = ", ".join(f"{k}={value_words(v)}" for k, v in row.settings.items())
        tip = f"trial {row.trial}: {score.value:.4g} ({words})"
        chart.point(place, score.value, 4, _colour(report, row, _POINT), score.error, tip=tip)


def _rounds(drawing: Drawing, at: tuple[int, int], report: SweepReport) -> None:
    """Score against budget, with a line per trial."""
    points = [point for row in report.rows for point in row.history]
    budgets = sorted({float(budget) for budget, _ in points})
    place_of = dict(zip(budgets, placed(budgets), strict=True))
    columns = {place: f"{budget:.4g}" for budget, place in place_of.items()}
    words = (report.unit or "budget", report.metric)
    chart = _panel(drawing, at, [score for _, score in points], words, columns)
    for row in reversed(report.rows):
        colour, tip = _colour(report, row, _LINE), f"trial {row.trial}"
        corners = [(place_of[float(budget)], score) for budget, score in row.history]
        chart.line(corners, colour, tip=tip)
        for corner in corners:
            chart.point(*corner, 3, colour, tip=tip)


def _colour(report: SweepReport, row: ReportRow, usual: str) -> str:
    return _BEST if report.best is not None and row.trial == report.best.trial else usual
