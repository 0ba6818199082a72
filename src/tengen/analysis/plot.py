"""The course of a game as SVG: what it was worth after each move, big mistakes marked."""

from tengen.analysis.board import player_name
from tengen.analysis.drawing import Drawing
from tengen.analysis.review import Review, ReviewedMove

_WIDTH, _HEIGHT = 860.0, 360.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 22.0, 46.0, 46.0
_COLOURS = ("#1f4e8c", "#c0392b")
_GREY = "#888888"


def draw(review: Review) -> str:
    """A line of the value for player 0 (Black) over the moves, from -1 to 1."""
    drawing = Drawing(_WIDTH, _HEIGHT)
    names = [_name(review, player) for player in (0, 1)]
    drawing.title(f"{review.game.name}: {names[0]} against {names[1]}, seen by {review.network}")
    total = max(len(review.record.actions), 1)
    _axes(drawing, names, total)
    values = [_start(review), *(_for_first(each, each.after) for each in review.moves)]
    points = [(_x(number, total), _y(value)) for number, value in enumerate(values)]
    drawing.polyline(points, stroke="#222222", stroke_width=2, stroke_linejoin="round", kind="value")
    named = {each.number for each in review.worst()}
    for each in review.moves:
        if each.verdict:
            _mistake(drawing, each, total, each.number in named)
    _legend(drawing, names)
    return drawing.to_text()


def _axes(drawing: Drawing, names: list[str], total: int) -> None:
    for value in (-1.0, -0.5, 0.0, 0.5, 1.0):
        y = _y(value)
        drawing.line(_LEFT, y, _WIDTH - _RIGHT, y, stroke="#222222" if value == 0 else "#dddddd", stroke_width=1)
        drawing.text(_LEFT - 8, y, f"{value:+.1f}" if value else "0", 12, text_anchor="end", fill="#444444")
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000) if total / step <= 12)
    for number in range(0, total + 1, step):
        x = _x(number, total)
        drawing.line(x, _y(-1), x, _y(-1) + 5, stroke="#444444", stroke_width=1)
        drawing.text(x, _y(-1) + 15, str(number), 12, fill="#444444")
    drawing.text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 12, "moves", 12, fill="#444444")
    drawing.text(_LEFT + 8, _y(1) + 12, f"{names[0]} ahead", 11, text_anchor="start", fill=_GREY)
    drawing.text(_LEFT + 8, _y(-1) - 12, f"{names[1]} ahead", 11, text_anchor="start", fill=_GREY)


def _mistake(drawing: Drawing, each: ReviewedMove, total: int, named: bool) -> None:
    """A mark whose size says how bad it was."""
    x, y = _x(each.number, total), _y(_for_first(each, each.after))
    colour = _COLOURS[each.move.player]
    radius = 3 + 6 * min(each.loss, 1.0)
    kind = f"{each.verdict} p{each.move.player}"
    drawing.circle(x, y, radius, fill=colour, fill_opacity=0.75, stroke="#ffffff", kind=kind)
    if named:
        above = y - radius - 9 if y > _y(0.8) else y + radius + 9
        drawing.text(x, above, f"{each.number} {each.move.name}", 11, fill=colour, kind="label")


def _legend(drawing: Drawing, names: list[str]) -> None:
    """Which colour is whose mistake; names of people may be long, so one stands left and one right."""
    drawing.circle(_LEFT + 6, 20, 5, fill=_COLOURS[0])
    drawing.text(_LEFT + 18, 20, f"mistakes of {names[0]}", 12, text_anchor="start", fill="#222222")
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    drawing.circle(middle + 6, 20, 5, fill=_COLOURS[1])
    drawing.text(middle + 18, 20, f"mistakes of {names[1]}", 12, text_anchor="start", fill="#222222")


def _name(review: Review, player: int) -> str:
    given, role = review.record.players[player], player_name(review.game, player)
    name = f"{role} ({given})" if given else role
    return name if len(name) <= 40 else name[:39] + "…"


def _start(review: Review) -> float:
    return _for_first(review.moves[0], review.moves[0].before) if review.moves else 0.0


def _for_first(each: ReviewedMove, value: float) -> float:
    return value if each.move.player == 0 else -value


def _x(number: int, total: int) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * number / total


def _y(value: float) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - value) / 2
