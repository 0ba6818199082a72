"""Nobody waits at a channel for ever, whatever happens at its other side."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tengen.data.loader.channels import Channel, ChannelClosed, ChannelEnded, StageFailed, Ticks
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
