"""Times of compiled functions: what counts, and that one repeat measures what five do."""

import pytest

from tengen.bench.timing import Timing, in_turn


class Machine:
    """A clock, and functions that take longer while memory and caches are cold."""

    def __init__(self) -> None:
        self.seconds, self.calls = 0.0, list[str]()

    def working(self, name: str, *costs: float) -> None:
        self.seconds += costs[min(self.calls.count(name), len(costs) - 1)]
        self.calls.append(name)


@pytest.mark.parametrize("repeats", [1, 5])
def test_the_first_timed_call_pays_for_nothing_that_later_ones_do_not(repeats: int) -> None:
    machine = Machine()
    functions = {
        "bare": lambda: machine.working("bare", 9, 3, 2),
        "search": lambda: machine.working("search", 30, 5, 4),
    }
    found = in_turn(functions, repeats, now=lambda: machine.seconds)
    assert found == {"bare": Timing((2,) * repeats), "search": Timing((4,) * repeats)}
    assert machine.calls == ["bare", "search"] * (2 + repeats), "in turn, also while they warm up"


def test_shares_are_taken_call_by_call() -> None:
    """A machine that is slow for a while is slow for both."""
    bare, search = Timing((1.0, 2.0, 3.0)), Timing((2.0, 4.0, 6.0))
    assert bare.share_of(search) == (0.5, 0.0)
    assert bare.median == 2.0
    assert bare.noise == pytest.approx(0.5)
