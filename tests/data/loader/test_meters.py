"""Times and rates by a clock that the tests turn."""

import pytest

from tengen.data.loader.meters import Meter, Rate


class Clock:
    def __init__(self) -> None:
        self.time = 1000.25

    def __call__(self) -> float:
        return self.time


def test_a_rate_is_of_the_last_seconds_and_falls_to_nothing() -> None:
    rate = Rate(1000.25)
    assert rate.value(1000.25) == 0
    for tenth in range(600):
        rate.add(5, 1000.25 + tenth / 10)
    now = 1000.25 + 59.9
    assert rate.value(now) == pytest.approx(50, rel=0.02)
    seen = [rate.value(now + idle) for idle in range(12)]
    assert seen == sorted(seen, reverse=True)
    assert seen[5] == pytest.approx(25, rel=0.15)
    assert seen[-1] == 0


def test_a_rate_at_the_beginning_is_of_the_time_so_far() -> None:
    rate = Rate(1000.25)
    rate.add(30, 1001.0)
    assert rate.value(1003.25) == pytest.approx(10)


def test_working_and_waiting() -> None:
    clock = Clock()
    meter = Meter(clock)
    clock.time += 100  # nothing has begun
    meter.turn("working")
    clock.time += 2
    with meter.waiting("input"):
        clock.time += 3
    clock.time += 4
    meter.count(7)
    with meter.waiting("output"):
        clock.time += 5
        during = meter.stats("train", "read", "files", 2, 4)
    meter.count(8)
    after = meter.stats("train", "read", "files", 2, 4)
    assert (during.doing, during.since, during.waits_for) == ("output", 5, "room in the stage behind it")
    assert (after.doing, after.since, after.waits_for) == ("working", 0, "")
    assert (after.working, after.waiting_for_input, after.waiting_for_output) == (6, 3, 5)
    assert (after.items, after.rows, after.queue, after.queue_capacity) == (2, 15, 2, 4)


def test_a_wait_that_lasts_is_counted_before_it_ends() -> None:
    clock = Clock()
    meter = Meter(clock)
    meter.turn("working")
    meter.count(1000)
    with meter.waiting("input"):
        clock.time += 60
        stats = meter.stats("", "watch", "new files", 0, None)
    assert (stats.doing, stats.since, stats.waits_for, stats.waiting_for_input) == ("input", 60, "new files", 60)
    assert (stats.rows, stats.rows_per_second, stats.items_per_second) == (1000, 0, 0)


def test_an_error_ends_a_wait() -> None:
    meter = Meter()
    meter.turn("working")
    with pytest.raises(KeyError), meter.waiting("input"):
        raise KeyError
    assert meter.stats("", "", "", 0, None).doing == "working"
