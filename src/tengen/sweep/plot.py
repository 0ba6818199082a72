"""The results of a sweep as a picture (SVG): a panel for each setting, and one for the rounds if there are several."""

import json
from collections.abc import Sequence
from xml.sax.saxutils import escape

from tengen.sweep.report import Report, Row, placed, short_names, value_words

_WIDTH, _HEIGHT = 360, 260  # of a panel
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 30, 40
_ACROSS = 3  # panels in a row
_POINT, _BEST, _LINE, _INK = "#4878a8", "#c8502c", "#9ab4cc", "#333"
_LONGEST = 14  # characters of a label


def svg(report: Report) -> str:
    """The whole picture; with words alone if nothing has a score yet."""
    rows = [row for row in report.rows if row.score is not None]
    names = zip(report.keys, short_names(report.keys), strict=True)
    panels = [_setting(rows, key, name, report) for key, name in names] if rows else []
    if any(len(row.history) > 1 for row in report.rows):
        panels.append(_rounds(report))
    across = min(max(len(panels), 1), _ACROSS)
    down = -(-max(len(panels), 1) // _ACROSS)
    width, height = across * _WIDTH, down * _HEIGHT
    placed_panels = [
        f'<g transform="translate({n % _ACROSS * _WIDTH},{n // _ACROSS * _HEIGHT})">{panel}</g>'
        for n, panel in enumerate(panels)
    ]
    body = "\n".join(placed_panels) or _text(width / 2, height / 2, "no trial has a score yet")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def _setting(rows: Sequence[Row], key: str, name: str, report: Report) -> str:
    """Score against one setting; numbers in proportion, anything else side by side."""
    written = [row.settings[key] for row in rows]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in written):
        places = placed([float(value) for value in written])
    else:
        kinds = sorted({json.dumps(value) for value in written})
        places = [(kinds.index(json.dumps(value)) + 0.5) / len(kinds) for value in written]
    scores = [row.score.value for row in rows if row.score is not None]
    ends = _ends(scores)
    best = report.best
    parts = [_frame(name, report.metric, ends)]
    for place, score, row in zip(places, scores, rows, strict=True):
        words = ", ".join(f"{k}={value_words(v)}" for k, v in row.settings.items())
        colour = _BEST if best is not None and row.trial == best.trial else _POINT
        x, y = _x(place), _y(score, ends)
        title = f"<title>trial {escape(row.trial)}: {score:.4g} ({escape(words)})</title>"
        if row.score is not None and row.score.error is not None:
            high, low = min(score + row.score.error, ends[1]), max(score - row.score.error, ends[0])
            top, bottom = _y(high, ends), _y(low, ends)
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" stroke="{_LINE}"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}">{title}</circle>')
    marks = {round(place, 3): value_words(value) for place, value in zip(places, written, strict=True)}
    parts += [_text(_x(place), _HEIGHT - _BOTTOM + 14, marks[place]) for place in _apart(sorted(marks))]
    return "".join(parts)


def _rounds(report: Report) -> str:
    """Score against budget, a line for each trial."""
    points = [point for row in report.rows for point in row.history]
    budgets = sorted({float(budget) for budget, _ in points})
    at = dict(zip(budgets, placed(budgets), strict=True))
    ends = _ends([score for _, score in points])
    best = report.best
    parts = [_frame(report.unit or "budget", report.metric, ends)]
    for row in reversed(report.rows):
        colour = _BEST if best is not None and row.trial == best.trial else _LINE
        corners = [f"{_x(at[float(budget)]):.1f},{_y(score, ends):.1f}" for budget, score in row.history]
        title = f"<title>trial {escape(row.trial)}</title>"
        line = f'points="{" ".join(corners)}" fill="none" stroke="{colour}"'
        parts.append(f"<polyline {line}>{title}</polyline>")
        for corner in corners:
            x, y = corner.split(",")
            parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}">{title}</circle>')
    marks = {place: f"{budget:.4g}" for budget, place in at.items()}
    parts += [_text(_x(place), _HEIGHT - _BOTTOM + 14, marks[place]) for place in _apart(sorted(marks))]
    return "".join(parts)


def _frame(across: str, up: str, ends: tuple[float, float]) -> str:
    inner_width, inner_height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    parts = [
        f'<rect x="{_LEFT}" y="{_TOP}" width="{inner_width}" height="{inner_height}" fill="none" stroke="#bbb"/>',
        _text(_LEFT + inner_width / 2, _HEIGHT - 8, across),
        _text(_LEFT + inner_width / 2, _TOP - 10, up),
    ]
    for share in (0, 0.5, 1):
        value = ends[0] + (ends[1] - ends[0]) * share
        parts.append(_text(_LEFT - 6, _y(value, ends) + 4, f"{value:.4g}", "end"))
    return "".join(parts)


def _text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    cut = words if len(words) <= 40 else words[:37] + "..."
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{_INK}">{escape(cut)}</text>'


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """The range of the vertical axis, a little more than the values'."""
    low, high = min(values), max(values)
    margin = 0.08 * (high - low) or max(abs(high) * 0.05, 1e-6)
    return low - margin, high + margin


def _x(place: float) -> float:
    return _LEFT + 10 + place * (_WIDTH - _LEFT - _RIGHT - 20)


def _y(value: float, ends: tuple[float, float]) -> float:
    return _TOP + (ends[1] - value) / (ends[1] - ends[0]) * (_HEIGHT - _TOP - _BOTTOM)


def _apart(places: Sequence[float]) -> list[float]:
    """Those that leave room for a label each."""
    room = 7 * _LONGEST / 2 / (_WIDTH - _LEFT - _RIGHT)
    kept: list[float] = []
    for place in places:
        if not kept or place - kept[-1] >= room:
            kept.append(place)
    return kept
