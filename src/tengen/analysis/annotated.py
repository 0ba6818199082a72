"""A reviewed game as a record with comments: SGF for Go, the plain text record for others."""

from dataclasses import replace

from tengen.analysis import review_text
from tengen.analysis.board import player_name
from tengen.analysis.review import Review, ReviewedMove
from tengen.data.records import sgf, text
from tengen.data.records.records import Record


def ending(game: str) -> str:
    """What the name of the file ends in."""
    return ".sgf" if game == "go" else ".txt"


def as_text(review: Review) -> str:
    """The record; Tengen reads it as the same game, with the values of the review."""
    record = _with_values(review)
    if record.game == "go":
        notes = {ply: sgf.Annotation(words) for ply, words in review.said.items()}  # of moves that were not reviewed
        notes |= {each.number - 1: _annotation(review, each) for each in review.moves}
        return sgf.write_annotated(record, notes)
    return text.write_annotated(record, {each.number - 1: _comment(review, each) for each in review.moves})


def _with_values(review: Review) -> Record:
    """The record with the value of each move for who made it, and the summary among its notes."""
    values = list(review.record.values)
    for each in review.moves:
        values[each.number - 1] = max(-1.0, min(1.0, each.after))
    notes = {**review.record.notes, "reviewed by": review.network}
    notes |= {f"review {number}": line for number, line in enumerate(review_text.overview(review), 1)}
    return replace(review.record, values=tuple(values), notes=notes)


def _comment(review: Review, each: ReviewedMove) -> list[str]:
    """What is said about a move, line by line."""
    rank = "not looked at" if each.rank is None else f"choice {each.rank}"
    who = player_name(review.game, each.move.player)
    lines = [f"{each.before:+.3f} before, {each.after:+.3f} after for {who}, {rank}"]
    if each.is_best:
        lines.append(f"expected: {' '.join(review_text.shown(each.best))}")
    else:
        lines.append(
            f"{each.verdict + ': ' if each.verdict else ''}loses {each.loss:.3f}" if each.loss else "loses nothing"
        )
        lines.append(f"first choice {each.best_value:+.3f}: {' '.join(review_text.shown(each.best))}")
    return lines


def _annotation(review: Review, each: ReviewedMove) -> sgf.Annotation:
    properties = {"blunder": {"BM": "2"}, "mistake": {"BM": "1"}, "inaccuracy": {"DO": ""}}.get(each.verdict, {})
    black = each.after if each.move.player == 0 else -each.after
    # Sabaki draws its graph of the game from this: Black's chances in percent.
    properties = {**properties, "SBKV": f"{50 * (1 + black):.2f}"}
    before = review.said.get(each.number - 1, "")
    comment = "\n".join(_comment(review, each)) + (f"\n\n{before}" if before else "")
    if each.is_best:
        return sgf.Annotation(comment, properties)
    instead = tuple(move.action for move in each.best)
    return sgf.Annotation(comment, properties, instead, f"the search prefers this: {each.best_value:+.3f}")
