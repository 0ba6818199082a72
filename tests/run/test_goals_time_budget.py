"""How a run with a goal of minutes divides its time."""

import itertools
import math

import pytest

from tengen.run.goals import RATINGS, SteadyProgress, TimeBudget
from tests.helpers.tiny_runs import tiny

HOUR = TimeBudget(3600.0, 720.0)
FREE = TimeBudget(None, 150.0)


def test_a_short_run_is_rated_as_often_as_a_long_one() -> None:
    for minutes in (1.5, 8.5, 100.0):
        config = tiny(f"goal.minutes={minutes}", "rating.minutes=30")
        budget = TimeBudget.of(config.goal, config.rating.minutes)
        assert budget.goal == 60 * minutes
        assert budget.every == 60 * min(30, minutes / RATINGS)
    config = tiny("rating.minutes=30")
    assert TimeBudget.of(config.goal, config.rating.minutes) == TimeBudget(None, 1800.0)


def test_without_a_goal_of_minutes_nothing_is_short() -> None:
    assert FREE.for_rating(1e6, 1e6, 1e6) == math.inf
    assert FREE.until_closing(1e6) == math.inf
    assert FREE.for_last_rating(lambda most: most, 0.0) == FREE.for_writing(7.0) == FREE.for_writing(None) == 0.0
    assert FREE.stretched(77.0, 10.0) == 77.0


def test_matches_take_their_share_and_no_more() -> None:
    elapsed, spent = 60.0, 0.0
    for _ in range(100):  # every rating takes all that it may
        seconds = HOUR.for_rating(elapsed, spent, 30.0)
        elapsed, spent = elapsed + seconds + HOUR.every, spent + seconds
        if elapsed > 3600 - 30:
            break
    assert 0.25 * 3600 < spent <= 0.35 * 3600


def test_the_first_rating_may_take_longer_since_it_compiles() -> None:
    assert HOUR.for_rating(60.0, 0.0, 30.0) == 0.2 * 3600
    assert HOUR.for_rating(600.0, 400.0, 30.0) < 0.1 * 3600


def test_no_rating_takes_what_is_kept_for_the_end() -> None:
    assert HOUR.for_rating(3500.0, 0.0, 90.0) == pytest.approx(10.0)
    assert HOUR.for_rating(3550.0, 0.0, 90.0) == 0.0


def test_the_last_rating_has_a_share_even_if_the_others_took_theirs() -> None:
    assert HOUR.for_last_rating(lambda most: most, 1e4) == pytest.approx(0.06 * 3600)
    assert HOUR.for_last_rating(lambda most: min(most, 12.0), 0.0) == 12.0


def test_play_stops_when_what_is_left_is_what_the_end_needs() -> None:
    assert HOUR.stretched(0.0, 100.0) == 0.0
    assert HOUR.stretched(3500.0, 100.0) == pytest.approx(3600.0)
    assert HOUR.stretched(3499.0, 100.0) < 3600.0
    assert HOUR.stretched(5.0, 4000.0) > 3600.0, "an end that takes longer than the run begins at once"
    assert HOUR.stretched(5.0, 0.0) == 5.0


def test_writing_is_guessed_before_it_was_measured() -> None:
    minute = TimeBudget(60.0, 12.0)
    assert 1.0 <= minute.for_writing(None) < 0.05 * 60
    assert minute.for_writing(5.0) > 5.0
    assert minute.until_closing(50.0) == pytest.approx(60 - 50 - 0.6)


def test_progress_is_the_share_of_the_time_while_nothing_is_estimated_anew() -> None:
    progress = SteadyProgress()
    for elapsed in (0.0, 30.0, 30.0, 45.0, 90.0):
        assert progress.at(elapsed, 90.0 - elapsed) == pytest.approx(elapsed / 90)
    assert progress.at(95.0, -5.0) == 1.0


def test_progress_neither_jumps_nor_falls_when_the_end_needs_more_time_or_less() -> None:
    progress, shares = SteadyProgress(), []
    for elapsed in range(100):
        reserved = 40.0 if 30 <= elapsed < 45 else 5.0
        shares.append(progress.at(float(elapsed), max(100.0 - reserved - elapsed, 0.0)))
    steps = [after - before for before, after in itertools.pairwise(shares)]
    assert min(steps) >= 0
    assert max(steps) < 0.04
    assert shares[-1] == 1.0


def test_a_run_that_is_started_again_has_the_progress_of_its_time() -> None:
    assert SteadyProgress().at(60.0, 30.0) == pytest.approx(2 / 3)
