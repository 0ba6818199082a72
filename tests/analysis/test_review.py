import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from tengen.analysis import query, review_output
from tengen.analysis.review import Review, as_dict, review
from tengen.engine.engine import Candidate, Engine, SearchReport
from tengen.run.networks import FoundNetwork
from tests.oracles import tic_tac_toe_solver as solver

MOVES = "a1 b1 a2 b2 c3 b3"
"""b1 loses by force, c3 instead of a3 gives the win away, and b3 then wins for o."""


@pytest.fixture(scope="module")
def second(engine: Engine) -> Engine:
    return Engine(engine.found, engine.game, engine.settings)


def _review(engine: Engine, moves: str, **rest: Any) -> Review:
    return review(engine, query.new_game(engine.found.saved).then(moves), 1500, **rest)


@pytest.mark.slow
def test_a_win_that_was_missed_is_a_blunder(engine: Engine) -> None:
    found = _review(engine, MOVES)
    assert found.complete
    missed = found.moves[4]
    assert (missed.verdict, missed.best[0].name, missed.best_value) == ("blunder", "a3", 1.0)
    assert missed.after < -0.8
    assert missed.loss > 1.8
    assert found.moves[1].verdict == "blunder"
    assert found.worst()[0] == missed
    last = found.moves[5]
    assert (last.is_best, last.loss, last.after) == (True, 0.0, 1.0)  # the game's own result
    (x, o) = found.summaries()
    assert (x.moves, o.moves) == (3, 3)
    assert x.mean_loss == pytest.approx(np.mean([each.loss for each in found.moves[::2]]))
    assert x.verdicts["blunder"] == 1
    text = review_output.as_text(found)
    assert "move 5: x c3 loses" in text
    assert text.count("??") == 2


def test_blunders_are_where_perfect_play_says_so(engine: Engine, second: Engine) -> None:
    states = [jax.tree.map(np.asarray, state) for state in query.new_game(engine.found.saved).then(MOVES).states()]
    for each in _review(engine, MOVES, second=second).moves:
        good = each.move.action in solver.best_moves(states[each.number - 1])
        assert (each.verdict == "blunder") == (not good)


def test_it_can_be_stopped_and_says_how_far_it_came(engine: Engine) -> None:
    stop, heard = threading.Event(), []

    def each(move: Any) -> None:
        heard.append(move.number)
        if move.number == 2:
            stop.set()

    found = _review(engine, "a1 b1 a2 b2 c3", stop=stop, each=each)
    assert heard == [1, 2]
    assert len(found.moves) == 2
    assert not found.complete
    assert "stopped after 2 of 5 moves" in review_output.as_text(found)
    assert as_dict(found)["complete"] is False


class _Scripted:
    """An engine that says what it is told to say, whoever is to move."""

    found = SimpleNamespace(name="scripted")

    def __init__(self, reports: list[SearchReport]) -> None:
        self.reports = reports

    def reset(self, state: Any) -> None:
        del state

    def play(self, action: int) -> None:
        del action

    def step(self, state: Any, action: int) -> Any:
        del action
        return state

    def think(self, *limits: Any) -> SearchReport:
        del limits
        return self.reports.pop(0)


def test_signs_follow_who_moves_and_not_the_number_of_the_move(noughts: FoundNetwork) -> None:
    first = SearchReport(0, 9, 0.5, 0.1, 9, [Candidate(4, 8, 0.6, 0.3, (4, 0)), Candidate(0, 1, 0.2, 0.1, (0,))], 9)
    game = query.new_game(noughts.saved).then("a1")
    for player, after in ((1, -0.3), (0, 0.3)):  # the second as in games where one may move twice
        found = review(_Scripted([first, replace(first, player=player, value=0.3)]), game, 9)
        (move,) = found.moves
        assert (move.before, move.after, move.best_value, move.rank) == (0.5, after, 0.6, 2)
        assert move.loss == pytest.approx(0.6 - after)
    assert as_dict(found)["moves"][0]["line"] == ["b2", "a1"]


def test_a_move_that_turns_out_better_than_the_best_loses_nothing(noughts: FoundNetwork) -> None:
    first = SearchReport(0, 9, 0.5, 0.1, 9, [Candidate(4, 8, 0.6, 0.3, (4,))], 9)
    found = review(
        _Scripted([first, replace(first, player=1, value=-0.9)]), query.new_game(noughts.saved).then("a1"), 9
    )
    (move,) = found.moves
    assert (move.loss, move.rank, move.verdict) == (0.0, None, "")


def test_a_mistake_is_compared_with_the_best_move_searched_as_long(noughts: FoundNetwork) -> None:
    first = SearchReport(0, 9, 0.5, 0.1, 9, [Candidate(4, 8, 0.6, 0.3, (4,))], 9)
    game, played = query.new_game(noughts.saved).then("a1"), replace(first, player=1, value=0.2)
    for better, loss in ((-0.5, 0.7), (0.1, 0.1), (0.9, 0.0)):
        second = _Scripted([replace(first, player=1, value=better)])
        (move,) = review(_Scripted([first, played]), game, 9, second=second).moves
        assert (move.best_value, move.loss) == (pytest.approx(-better), pytest.approx(loss))
