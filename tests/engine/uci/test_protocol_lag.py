"""Margins from what two clocks show."""

import pytest

from tengen.engine.uci.protocol import Lag


def test_nothing_is_added_to_the_overhead_of_punctual_moves() -> None:
    lag = Lag()
    for left in (10.0, 9.05, 8.1):  # 50 ms outside each, below the overhead
        lag.clock_says(0, left)
        lag.moved(0, planned=1.0, took=1.0, left=left, increment=0.1)
    assert lag.margin(0.1) == pytest.approx(0.1)


def test_the_programs_clock_tells_of_time_lost_outside() -> None:
    lag = Lag()
    lag.moved(0, planned=1.0, took=1.0, left=10.0, increment=0.1)
    lag.clock_says(1, 3.0)  # the other player's
    assert lag.margin(0.1) == pytest.approx(0.1)
    lag.clock_says(0, 8.6)
    assert lag.margin(0.1) == pytest.approx(0.5)
    lag.moved(0, planned=1.0, took=1.2, left=8.6, increment=0.1)
    assert lag.margin(0.1) == pytest.approx(0.45 + 0.2)


@pytest.mark.parametrize("left", [None, 1.0, 60.0])
def test_a_clock_that_was_set_says_nothing(left: float | None) -> None:
    lag = Lag()
    lag.moved(0, planned=1.0, took=1.0, left=10.0, increment=0.0)
    lag.clock_says(0, left)
    assert lag.margin(0.0) == 0.0


def test_a_new_game_has_new_clocks() -> None:
    lag = Lag()
    lag.moved(0, planned=1.0, took=1.5, left=10.0, increment=0.0)
    lag.new_game()
    lag.clock_says(0, 8.0)
    assert lag.margin(0.0) == pytest.approx(0.5)


def test_one_long_freeze_does_not_stop_the_engine_from_thinking_for_ever() -> None:
    lag = Lag()
    lag.moved(0, planned=1.0, took=100.0, left=None, increment=0.0)
    for _ in range(7):
        lag.moved(0, planned=1.0, took=1.0, left=None, increment=0.0)
    assert lag.margin(0.0) < 0.1
