"""A review as text: a table of the moves with a summary, and the game's record with comments."""

from dataclasses import replace

from tengen.analysis.board import player_name
from tengen.analysis.report import shown
from tengen.analysis.review import Review, ReviewedMove
from tengen.data.records import pgn, sgf, text
from tengen.data.records.records import Annotation, Record, file_name
from tengen.words import counted

_MARKS = {"blunder": "??", "mistake": "?", "inaccuracy": "?!", "": ""}


def as_text(review: Review) -> str:
    """All moves, then the summary."""
    lines = [*review.remarks, *([""] if review.remarks else []), *table(review), "", *summary(review)]
    return "\n".join(lines) + "\n"


def table(review: Review) -> list[str]:
    """One line per move."""
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
    """One move in words."""
    who = player_name(review.game, each.move.player)
    return f"move {each.number}: {who} {each.move.name} loses {each.loss:.3f}; better {' '.join(shown(each.best))}"


def progress(each: ReviewedMove, total: int) -> str:
    """A plain line for where there is no terminal."""
    words = f"move {each.number} of {total}: {each.move.name} {each.after:+.3f}"
    return words + (f", loses {each.loss:.3f} ({each.best[0].name} {each.best_value:+.3f})" if each.verdict else "")


def record_ending(game: str) -> str:
    """What the name of the file ends in."""
    return file_name("", game)


def as_record(review: Review) -> str:
    """The record; Tengen reads it as the same game, with the values of the review."""
    record = _with_values(review)
    if record.game == "go":
        notes = {ply: Annotation(words) for ply, words in review.comments.items()}  # of moves that were not reviewed
        notes |= {each.number - 1: _annotation(review, each) for each in review.moves}
        return sgf.write_annotated(record, notes)
    if record.game == "chess":
        chess_notes = {ply: Annotation(words) for ply, words in review.comments.items()}
        chess_notes |= {each.number - 1: _pgn_annotation(review, each) for each in review.moves}
        return pgn.write_annotated(record, chess_notes)
    return text.write_annotated(record, {each.number - 1: _comment(review, each) for each in review.moves})


def _with_values(review: Review) -> Record:
    """The record with the value of each move for who made it, and the summary among its notes."""
    values = list(review.record.values)
    for each in review.moves:
        values[each.number - 1] = max(-1.0, min(1.0, each.after))
    notes = {**review.record.notes, "reviewed by": review.network}
    notes |= {f"review {number}": line for number, line in enumerate(overview(review), 1)}
    return replace(review.record, values=tuple(values), notes=notes)


def _comment(review: Review, each: ReviewedMove) -> list[str]:
    """What is said about a move, line by line."""
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
    before = review.comments.get(each.number - 1, "")
    comment = "\n".join(_comment(review, each)) + (f"\n\n{before}" if before else "")
    if each.is_best:
        return Annotation(comment, properties)
    instead = tuple(move.action for move in each.best)
    return Annotation(comment, properties, instead, f"the search prefers this: {each.best_value:+.3f}")


def _pgn_annotation(review: Review, each: ReviewedMove) -> Annotation:
    before = review.comments.get(each.number - 1, "")
    comment = "; ".join([*_comment(review, each), *([before] if before else [])])
    if each.is_best:
        return Annotation(comment)
    instead = tuple(move.action for move in each.best)
    words = f"the search prefers this: {each.best_value:+.3f}"
    return Annotation(comment, {}, instead, words, _MARKS[each.verdict])
