"""The course of a game as SVG: its value after each move, with the mistakes marked."""

from tengen.analysis.board import player_name
from tengen.analysis.chart import Chart, ticks
from tengen.analysis.drawing import Drawing
from tengen.analysis.review import Review, ReviewedMove

_WIDTH, _HEIGHT = 860.0, 360.0
_BOX = (62.0, 46.0, _WIDTH - 22.0, _HEIGHT - 46.0)
_COLOURS = ("#1f4e8c", "#c0392b")
_INK, _GREY = "#222222", "#888888"


def draw(review: Review) -> str:
    """A line of the value for player 0 (Black) over the moves, from -1 to 1."""
    drawing = Drawing(_WIDTH, _HEIGHT)
    names = [_name(review, player) for player in (0, 1)]
    drawing.title(f"{review.game.name}: {names[0]} against {names[1]}, seen by {review.network}")
    total = max(len(review.record.actions), 1)
    chart = Chart(drawing, _BOX, (0.0, total), (-1.0, 1.0))
    levels = {value: f"{value:+.1f}" if value else "0" for value in (-1.0, -0.5, 0.0, 0.5, 1.0)}
    chart.axes("moves", "", {x: f"{x:g}" for x in ticks(0, total) if x == int(x)}, levels)
    left, top, right, bottom = _BOX
    drawing.line(left, chart.y(0), right, chart.y(0), stroke=_INK)
    for y, name in ((top + 12, names[0]), (bottom - 12, names[1])):
        drawing.text(left + 8, y, f"{name} ahead", 11, text_anchor="start", fill=_GREY)
    values = [_for_first(each, each.after) for each in review.moves]
    start = _for_first(review.moves[0], review.moves[0].before) if review.moves else 0.0
    chart.line(enumerate([start, *values]), _INK, stroke_width=2, stroke_linejoin="round", kind="value")
    named = {each.number for each in review.worst()}
    for each in review.moves:
        if each.verdict:
            _mistake(chart, each, each.number in named)
    for player, x in enumerate((left, (left + right) / 2)):  # names of people may be long
        drawing.circle(x + 6, 20, 5, fill=_COLOURS[player])
        drawing.text(x + 18, 20, f"mistakes of {names[player]}", 12, text_anchor="start", fill=_INK)
    return drawing.to_text()


def _mistake(chart: Chart, each: ReviewedMove, named: bool) -> None:
    """A mark whose size shows how bad the move was."""
    value, colour = _for_first(each, each.after), _COLOURS[each.move.player]
    radius = 3 + 6 * min(each.loss, 1.0)
    kind = f"{each.verdict} p{each.move.player}"
    chart.point(each.number, value, radius, colour, fill_opacity=0.75, stroke="#ffffff", kind=kind)
    if named:
        y = chart.y(value) + (radius + 9) * (-1 if value < 0.8 else 1)
        chart.drawing.text(chart.x(each.number), y, f"{each.number} {each.move.name}", 11, fill=colour, kind="label")


def _name(review: Review, player: int) -> str:
    given, role = review.record.players[player], player_name(review.game, player)
    name = f"{role} ({given})" if given else role
    return name if len(name) <= 40 else name[:39] + "…"


def _for_first(each: ReviewedMove, value: float) -> float:
    return value if each.move.player == 0 else -value
