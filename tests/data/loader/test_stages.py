"""Stages of the loader: their channels end and fail as they should, and their figures are right."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tengen.data.loader.stages import Channel, ChannelClosed, ChannelEnded, Meter, StageFailed, Ticks
from tests.helpers import loading


def in_background(function: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """A thread that does it, and what it gave or raised."""
    result: list[Any] = []

    def run() -> None:
        try:
            result.append(function())
        except Exception as error:
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, result


def test_items_in_order_until_the_end() -> None:
    channel: Channel[int] = Channel(3, "numbers")
    for number in range(3):
        channel.put(number)
    channel.end()
    assert [channel.get(), channel.poll(), channel.get()] == [0, 1, 2]
    for take in (channel.get, channel.poll):
        with pytest.raises(ChannelEnded):
            take()


def test_nothing_there_yet() -> None:
    channel: Channel[int] = Channel(3, "numbers")
    assert channel.poll() is None
    with pytest.raises(TimeoutError):
        channel.get(timeout=0.001)


def test_a_full_channel_waits_for_room() -> None:
    channel: Channel[int] = Channel(1, "numbers")
    channel.put(0)
    thread, result = in_background(lambda: channel.put(1))
    thread.join(0.02)
    assert thread.is_alive()
    assert (channel.waiting, channel.capacity) == (1, 1)
    assert [channel.get(), channel.get(timeout=loading.LONG)] == [0, 1]
    thread.join(loading.LONG)
    assert result == [None]


@pytest.mark.parametrize(
    ("happens", "kind"),
    [
        (lambda channel: channel.close(), ChannelClosed),
        (lambda channel: channel.end(), ChannelEnded),
        (lambda channel: channel.fail(StageFailed("read failed")), StageFailed),
    ],
)
def test_who_waits_for_an_item_wakes(happens: Callable[[Channel[int]], None], kind: type[Exception]) -> None:
    channel: Channel[int] = Channel(1, "numbers")
    thread, result = in_background(channel.get)
    happens(channel)
    thread.join(loading.LONG)
    assert isinstance(result[0], kind)


def test_who_waits_for_room_wakes() -> None:
    channel: Channel[int] = Channel(1, "numbers")
    channel.put(0)
    thread, result = in_background(lambda: channel.put(1))
    channel.close()
    thread.join(loading.LONG)
    assert isinstance(result[0], ChannelClosed)


def test_a_failure_is_told_before_what_is_left() -> None:
    channel: Channel[int] = Channel(2, "numbers")
    channel.put(0)
    channel.fail(StageFailed("first"))
    channel.fail(StageFailed("second"))
    with pytest.raises(StageFailed, match="first"):
        channel.get()


def test_ticks_come_at_once_and_then_after_a_while() -> None:
    ticks = Ticks(3600, lambda: "3 files")
    assert ticks.get() is None
    assert ticks.words() == "new files: 3 files, looked at every 3600 s"
    thread, result = in_background(ticks.get)
    thread.join(0.02)
    assert thread.is_alive()
    ticks.close()
    thread.join(loading.LONG)
    assert isinstance(result[0], ChannelClosed)


class Clock:
    def __init__(self) -> None:
        self.time = 1000.25

    def __call__(self) -> float:
        return self.time


def test_a_rate_is_of_the_last_seconds_and_falls_to_nothing() -> None:
    clock = Clock()
    meter = Meter(clock)

    def rate() -> float:
        return meter.stats("", "", "", 0, None).rows_per_second

    assert rate() == 0
    for _ in range(600):
        meter.count(5)
        clock.time += 0.1
    assert rate() == pytest.approx(50, rel=0.02)
    seen = []
    for _ in range(12):
        seen.append(rate())
        clock.time += 1
    assert seen == sorted(seen, reverse=True)
    assert seen[5] == pytest.approx(25, rel=0.15)
    assert seen[-1] == 0


def test_a_rate_at_the_beginning_is_of_the_time_so_far() -> None:
    clock = Clock()
    meter = Meter(clock)
    clock.time += 0.75
    meter.count(30)
    clock.time += 2.25
    assert meter.stats("", "", "", 0, None).rows_per_second == pytest.approx(10)


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
