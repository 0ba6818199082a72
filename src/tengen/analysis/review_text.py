"""A review as text: a table of the moves, and what is to be learned from them."""

from tengen.analysis.board import player_name
from tengen.analysis.report import shown
from tengen.analysis.review import Review, ReviewedMove

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
            counts = ", ".join(f"{count} {_counted(word, count)}" for word, count in one.verdicts.items())
            given = review.record.players[one.player]
            name = player_name(review.game, one.player) + (f" ({given})" if given else "")
            lines.append(
                f"{name}: {one.moves} {_counted('move', one.moves)}, {one.best_moves / one.moves:.0%} the best, "
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


def _counted(word: str, count: int) -> str:
    if count == 1:
        return word
    return word[:-1] + "ies" if word.endswith("y") else word + "s"
