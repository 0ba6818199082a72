"""How much work a call gets."""

import pytest

from tengen.selfplay.pacing import Pace


def test_the_first_call_says_nothing_since_it_compiles() -> None:
    pace = Pace(1.0, amount=10).after(10, 60.0)
    assert pace.units == 10
    assert pace.after(10, 2.0).units == 5


def test_it_settles_where_calls_take_as_long_as_they_should() -> None:
    pace, grown = Pace(1.0, calls=1), []
    for _ in range(6):
        units = pace.units
        grown.append(units)
        pace = pace.after(units, 0.01 * units)
    assert grown == [1, 4, 16, 64, 100, 100], "four times as much at most, until a second is full"


@pytest.mark.parametrize(("seconds", "units"), [(1e9, 1), (0.0, 24), (1.0, 8), (0.5, 16)])
def test_limits(seconds: float, units: int) -> None:
    assert Pace(1.0, amount=8, most=24, calls=1).after(8, seconds).units == units


def test_a_small_call_does_not_make_the_next_ones_small() -> None:
    pace = Pace(1.0, amount=40, calls=1)
    assert pace.after(2, 0.01).units == 40
    assert pace.after(2, 1.0).units == 2
