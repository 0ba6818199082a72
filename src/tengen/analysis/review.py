"""Review of a whole game: the value of each move, and what would have been better."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tengen.analysis.analysis import FORMAT, NamedMove, follow
from tengen.analysis.query import Query
from tengen.data.format.identity import plain_options
from tengen.data.records.records import Record
from tengen.engine.engine import Engine, SearchReport
from tengen.games.core import Game
from tengen.words import plural

MISTAKES = ((0.3, "blunder"), (0.2, "mistake"), (0.1, "inaccuracy"))
"""From which loss on a move is called so; half a point of value is a quarter of the chance to win."""
_LISTED = 5
_LONGEST = 20  # moves of a line that are kept


@dataclass(frozen=True)
class ReviewedMove:
    """One move. Values are in [-1, 1], for the player who made it."""

    number: int  # from 1
    move: NamedMove
    before: float  # the search's, of the position in which it was made
    after: float  # of the position that it led to, from a search of that position, or the game's real result
    best: tuple[NamedMove, ...]  # the line that the search prefers; its first move may be the one that was made
    best_value: float  # of the first move of that line, from a search as long as that of `after` where it matters
    rank: int | None  # of the move among those that the search looked at, 1 is the best; None if it did not
    prior: float | None  # the network's probability for it; None if the search did not look at it
    visits: int  # of the position in which it was made

    @property
    def is_best(self) -> bool:
        return self.best[0].action == self.move.action

    @property
    def loss(self) -> float:
        """How much less the move is worth than the best one; nothing if the search thinks more of it afterwards."""
        return 0.0 if self.is_best else max(0.0, self.best_value - self.after)

    @property
    def verdict(self) -> str:
        """blunder, mistake, inaccuracy, or nothing."""
        return next((word for least, word in MISTAKES if self.loss >= least), "")


@dataclass(frozen=True)
class ReviewSummary:
    player: int
    moves: int
    mean_loss: float
    best_moves: int  # how often it was what the search prefers
    verdicts: dict[str, int]


@dataclass(frozen=True)
class Review:
    """A game, or the first moves of it if the review was stopped."""

    network: str
    game: Game
    record: Record
    moves: tuple[ReviewedMove, ...]
    remarks: tuple[str, ...] = ()
    comments: Mapping[int, str] = field(default_factory=dict)  # on the moves, counted from 0, as the record has them

    @property
    def complete(self) -> bool:
        return len(self.moves) == len(self.record.actions)

    def summaries(self) -> list[ReviewSummary]:
        return [_summary(player, [each for each in self.moves if each.move.player == player]) for player in (0, 1)]

    def worst(self) -> list[ReviewedMove]:
        """The biggest mistakes, the biggest first."""
        wrong = [each for each in self.moves if each.verdict]
        return sorted(wrong, key=lambda each: -each.loss)[:_LISTED]


def review(
    engine: Engine,
    query: Query,
    visits: int | None,
    seconds: float | None = None,
    stop: threading.Event | None = None,
    each: Callable[[ReviewedMove], None] | None = None,
    second: Engine | None = None,
) -> Review:
    """Search every position of the game, calling `each` with every move; partial if `stop` is set meanwhile.

    A move that seems to be a mistake is compared once more: the `second` engine searches what the better move leads to
    for as long as what the played one led to was searched. Else moves look bad because less is known of others.
    """
    states, actions = query.states(), query.record.actions
    moves = follow(query.game, states[0], actions)
    engine.reset(states[0])
    if seconds is not None:
        engine.think(1)  # compiles, which is not thinking
    found: list[ReviewedMove] = []
    report: SearchReport | None = None
    for number, state in enumerate(states):
        if number:
            engine.play(actions[number - 1])
        before, report = report, engine.think(visits, seconds, stop)
        if stop is not None and stop.is_set():  # the last search was cut short, and is not used
            break
        if before is not None:
            after = _value(query.game, state, report, moves[number - 1].player)
            judged = _judge(query.game, states[number - 1], number, moves[number - 1], before, after)
            if second is not None and judged.verdict:
                better = _searched(second, query.game, states[number - 1], judged.best[0], (visits, seconds, stop))
                if stop is not None and stop.is_set():
                    break
                judged = replace(judged, best_value=better)
            found.append(judged)
            if each is not None:
                each(found[-1])
    return Review(engine.found.name, query.game, query.record, tuple(found), query.remarks, query.comments)


def as_dict(review: Review) -> dict[str, Any]:
    """Ready for JSON; docs/analyze.md says what is what."""
    game = review.game
    return {
        "format": FORMAT,
        "network": {"name": review.network},
        "game": {"name": game.name, "version": game.version, "options": plain_options(game)},
        "players": list(review.record.players),
        "result": review.record.result,
        "remarks": list(review.remarks),
        "complete": review.complete,
        "moves": [_move_dict(each) for each in review.moves],
        "summary": [
            {
                "player": one.player,
                "moves": one.moves,
                "mean_loss": round(one.mean_loss, 6),
                "best_moves": one.best_moves,
                **{plural(word): count for word, count in one.verdicts.items()},
            }
            for one in review.summaries()
        ],
    }


def _value(game: Game, state: Any, report: SearchReport, player: int) -> float:
    """What a position is worth for `player`, whoever moves there: the result if it is the end of the game."""
    if bool(game.is_over(state)):
        return float(game.returns(state)[player])
    return report.value if report.player == player else -report.value


def _searched(engine: Engine, game: Game, state: Any, move: NamedMove, limits: tuple[Any, ...]) -> float:
    """What a move is worth for who makes it, from a search of what it leads to."""
    after = engine.step(state, move.action)
    engine.reset(after)
    return _value(game, after, engine.think(*limits), move.player)


def _judge(game: Game, state: Any, number: int, move: NamedMove, before: SearchReport, after: float) -> ReviewedMove:
    best = before.candidates[0]
    ranks = [candidate.action for candidate in before.candidates]
    rank = ranks.index(move.action) + 1 if move.action in ranks else None
    return ReviewedMove(
        number=number,
        move=move,
        before=before.value,
        after=after,
        best=tuple(follow(game, state, best.line[:_LONGEST])),
        best_value=best.value,
        rank=rank,
        prior=None if rank is None else before.candidates[rank - 1].prior,
        visits=before.visits,
    )


def _summary(player: int, moves: Sequence[ReviewedMove]) -> ReviewSummary:
    losses = [each.loss for each in moves]
    return ReviewSummary(
        player=player,
        moves=len(moves),
        mean_loss=sum(losses) / len(losses) if losses else 0.0,
        best_moves=sum(each.is_best for each in moves),
        verdicts={word: sum(each.verdict == word for each in moves) for _, word in MISTAKES},
    )


def _move_dict(each: ReviewedMove) -> dict[str, Any]:
    figures = {name: getattr(each, name) for name in ("before", "after", "loss", "prior", "best_value")}
    return {
        "number": each.number,
        "player": each.move.player,
        "move": each.move.name,
        "action": each.move.action,
        "verdict": each.verdict or None,
        "rank": each.rank,
        "best": each.best[0].name,
        "line": [move.name for move in each.best],
        "visits": each.visits,
        **{name: None if value is None else round(value, 6) for name, value in figures.items()},
    }
