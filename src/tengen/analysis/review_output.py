"""A review as text (a table of the moves with a summary), as the game's record with comments, and as a chart."""

from dataclasses import replace

from tengen.analysis.board_picture import player_name
from tengen.analysis.drawing import Chart, Drawing, ticks
from tengen.analysis.report import shown
from tengen.analysis.review import Review, ReviewedMove
from tengen.data.records import pgn, sgf, text
from tengen.data.records.records import Annotation, Record, file_name
from tengen.words import counted

_MARKS = {"blunder": "??", "mistake": "?", "inaccuracy": "?!", "": ""}
_WIDTH, _HEIGHT = 860.0, 360.0
_BOX = (62.0, 46.0, _WIDTH - 22.0, _HEIGHT - 46.0)
_COLOURS = ("#1f4e8c", "#c0392b")
_INK, _GREY = "#222222", "#888888"


def as_text(review: Review) -> str:
    """All moves, then the summary."""
    lines = [*review.remarks, *([""] if review.remarks else []), *table(review), "", *summary(review)]
    return "\n".join(lines) + "\n"


def table(review: Review) -> list[str]:
    names = [player_name(review.game, player) for player in (0, 1)]
    width = max(map(len, names))
    wide = max([4, *(len(each.move.name) for each in review.moves)])
    best = max([4, *(len(each.best[0].name) for each in review.moves)])
    numbers = f"{'before':>6}  {'after':>6}  {'loss':>5}  {'rank':>4}"
    rows = [f"{'':4} {'':{width}}  {'move':{wide}}     {numbers}  {'best':{best}}  line"]
    for each in review.moves:
        rank = "-" if each.rank is None else str(each.rank)
        values = f"{each.before:+6.3f}  {each.after:+6.3f}  {each.loss:5.3f}  {rank:>4}"
        move = f"{each.number:4} {names[each.move.player]:{width}}  {each.move.name:{wide}} {_MARKS[each.verdict]:2}"
        rows.append(f"{move}  {values}  {each.best[0].name:{best}}  {' '.join(shown(each.best))}")
    return rows


def summary(review: Review) -> list[str]:
    """How well the players have played, and where they went wrong."""
    worst = [f"  {sentence(review, each)}" for each in review.worst()]
    return overview(review) + (["", "biggest mistakes:", *worst] if worst else [])


def overview(review: Review) -> list[str]:
    """A line for each player, and before them one if the review was stopped."""
    total, done = len(review.record.actions), len(review.moves)
    lines = [] if review.complete else [f"stopped after {done} of {total} moves"]
    for one in review.summaries():
        if one.moves:
            counts = ", ".join(counted(count, word) for word, count in one.verdicts.items())
            given = review.record.players[one.player]
            name = player_name(review.game, one.player) + (f" ({given})" if given else "")
            lines.append(
                f"{name}: {counted(one.moves, 'move')}, {one.best_moves / one.moves:.0%} the best, "
                f"mean loss {one.mean_loss:.3f}, {counts}"
            )
    return lines


def sentence(review: Review, each: ReviewedMove) -> str:
    who = player_name(review.game, each.move.player)
    return f"move {each.number}: {who} {each.move.name} loses {each.loss:.3f}; better {' '.join(shown(each.best))}"


def progress(each: ReviewedMove, total: int) -> str:
    """A plain line for where there is no terminal."""
    words = f"move {each.number} of {total}: {each.move.name} {each.after:+.3f}"
    return words + (f", loses {each.loss:.3f} ({each.best[0].name} {each.best_value:+.3f})" if each.verdict else "")


def record_ending(game: str) -> str:
    return file_name("", game)


def as_record(review: Review) -> str:
    """The record; Tengen reads it as the same game, with the values of the review."""
    record = _with_values(review)
    if record.game not in ("go", "chess"):
        return text.write_annotated(record, {each.number - 1: _comment(review, each) for each in review.moves})
    notes = {ply: Annotation(words) for ply, words in review.comments.items()}  # of moves that were not reviewed
    notes |= {each.number - 1: _annotation(review, each) for each in review.moves}
    return (sgf if record.game == "go" else pgn).write_annotated(record, notes)


def _with_values(review: Review) -> Record:
    """The record with the value of each move for who made it, and the summary among its notes."""
    values = list(review.record.values)
    for each in review.moves:
        values[each.number - 1] = max(-1.0, min(1.0, each.after))
    notes = {**review.record.notes, "reviewed by": review.network}
    notes |= {f"review {number}": line for number, line in enumerate(overview(review), 1)}
    return replace(review.record, values=tuple(values), notes=notes)


def _comment(review: Review, each: ReviewedMove) -> list[str]:
    rank = "not looked at" if each.rank is None else f"choice {each.rank}"
    who = player_name(review.game, each.move.player)
    lines = [f"{each.before:+.3f} before, {each.after:+.3f} after for {who}, {rank}"]
    if each.is_best:
        lines.append(f"expected: {' '.join(shown(each.best))}")
    else:
        lines.append(
            f"{each.verdict + ': ' if each.verdict else ''}loses {each.loss:.3f}" if each.loss else "loses nothing"
        )
        lines.append(f"first choice {each.best_value:+.3f}: {' '.join(shown(each.best))}")
    return lines


def _annotation(review: Review, each: ReviewedMove) -> Annotation:
    properties = {"blunder": {"BM": "2"}, "mistake": {"BM": "1"}, "inaccuracy": {"DO": ""}}.get(each.verdict, {})
    black = each.after if each.move.player == 0 else -each.after
    # Sabaki draws its graph of the game from this: Black's chances in percent.
    properties = {**properties, "SBKV": f"{50 * (1 + black):.2f}"}
    lines, before = _comment(review, each), review.comments.get(each.number - 1, "")
    if review.record.game == "chess":  # PGN has comments of one line
        comment = "; ".join([*lines, *([before] if before else [])])
    else:
        comment = "\n".join(lines) + (f"\n\n{before}" if before else "")
    if each.is_best:
        return Annotation(comment, properties)
    instead = tuple(move.action for move in each.best)
    words = f"the search prefers this: {each.best_value:+.3f}"
    return Annotation(comment, properties, instead, words, _MARKS[each.verdict])


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
