"""Driving one part: until when, and what is told of it."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from tengen.errors import TengenError
from tengen.loop.parts.running import Speaker, is_full, pause, run
from tengen.run.part import Part, Progress, waiting
from tengen.run.part_status import StatusWriter
from tests.helpers.tiny_runs import after, never


class Scripted(Part):
    """A part that does what is written."""

    kind, name = "train", "main"

    def __init__(self, *script: Progress | TengenError, flush: list[TengenError] | None = None) -> None:
        self.script, self.left, self.failures = script, list(script), flush or []
        self.flushed = self.closed = 0

    def run_once(self) -> Progress:
        now = self.left.pop(0) if self.left else waiting("more")
        if isinstance(now, TengenError):
            raise now
        return now

    def flush(self) -> None:
        self.flushed += 1
        if self.failures:
            raise self.failures.pop(0)

    def close(self) -> None:
        self.closed += 1


def full() -> TengenError:
    error = TengenError("/x: cannot be written")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    return error


@pytest.fixture
def go(tmp_path: Path) -> Callable[..., tuple[Progress, list[str]]]:
    def drive(part: Scripted, stop: Callable[[], bool] = never, *, once: bool = False) -> tuple[Progress, list[str]]:
        said: list[str] = []
        notice = StatusWriter(tmp_path, part.kind, part.name)
        return run(part, notice, stop, said.append, 0.001, once=once), said

    return drive


A, B, END = Progress("a"), Progress("b"), Progress("enough", ended=True)


def test_until_it_has_ended(go: Callable[..., tuple[Progress, list[str]]]) -> None:
    part = Scripted(A, waiting("rows"), B, END, A)
    last, said = go(part)
    assert last is END
    assert len(part.left) == 1
    assert part.flushed == 1
    assert said == ["a", "waiting: rows", "enough"]


def test_until_somebody_stops_it(go: Callable[..., tuple[Progress, list[str]]]) -> None:
    part = Scripted(*[A] * 1000)
    go(part, after(10))
    assert 980 < len(part.left) < 1000
    assert part.flushed == 1, "what was done is written"


def test_once_is_until_there_is_nothing_more(go: Callable[..., tuple[Progress, list[str]]]) -> None:
    part = Scripted(A, B, waiting("rows"), A)
    last, said = go(part, once=True)
    assert last is B, "what was done, and not what would be waited for"
    assert said == ["a"]
    assert len(part.left) == 1
    nothing, said = go(Scripted(waiting("rows")), once=True)
    assert not nothing.worked
    assert said == ["waiting: rows"]


@pytest.mark.parametrize("once", [False, True])
def test_a_full_disk_is_waited_for(go: Callable[..., tuple[Progress, list[str]]], once: bool) -> None:
    part = Scripted(A, full(), full(), B, END)
    last, said = go(part, once=once)
    assert last is END, "it is no reason to end"
    assert said == ["a", "waiting: space on the disk: /x: cannot be written", "enough"]


def test_a_full_disk_at_the_end(go: Callable[..., tuple[Progress, list[str]]]) -> None:
    part = Scripted(END, flush=[full(), full()])
    last, _ = go(part)
    assert last is END
    assert part.flushed == 3
    with pytest.raises(TengenError, match="cannot be written"):
        go(Scripted(A, flush=[full()] * 3), after(2))


def test_other_errors_end_it(go: Callable[..., tuple[Progress, list[str]]]) -> None:
    with pytest.raises(TengenError, match="broken"):
        go(Scripted(A, TengenError("broken")))


def test_full_disks_in_all_their_forms() -> None:
    assert is_full(full())
    assert is_full(OSError(errno.EDQUOT, "quota"))
    assert is_full(TengenError("x: No space left on device"))
    assert not is_full(OSError(errno.EACCES, "no"))
    assert not is_full(None)
    hidden = TengenError("x")
    hidden.__context__ = OSError(errno.ENOSPC, "full")  # as of `raise ... from None`
    assert is_full(hidden)


def test_a_pause_ends_when_it_is_time_to_stop() -> None:
    asked = iter([False, False, True])
    pause(10**6, lambda: next(asked))
    assert list(asked) == []


class Told:
    """A speaker with a clock."""

    def __init__(self) -> None:
        self.now, self.said = 0.0, []
        self.speaker = Speaker(self.said.append, every=10, clock=lambda: self.now)

    def tell(self, progress: Progress, at: float, seconds: float = 0.0) -> bool:
        """Whether that was worth a line."""
        self.now, before = at, len(self.said)
        self.speaker.tell(progress, seconds)
        return len(self.said) > before


def test_work_is_told_now_and_then() -> None:
    told = Told()
    assert [told.tell(Progress(f"{n}"), n) for n in (0, 5, 9, 10, 15, 20)] == [True, False, False, True, False, True]
    assert told.tell(Progress("big news", event=True), 21)
    assert told.tell(Progress("the end", ended=True), 22)


def test_a_wait_is_told_at_once_and_then_less_and_less() -> None:
    told = Told()
    told.tell(A, 0)
    lines = [n for n in range(1, 200) if told.tell(waiting(f"{n} of 200 rows"), n, n)]
    assert lines == [1, 11, 31, 71, 151]
    assert told.said[1] == "waiting: 1 of 200 rows"
    assert told.said[2] == "waiting: 11 of 200 rows (for 11 s)"


def test_another_wait_is_told_at_once() -> None:
    told = Told()
    told.tell(waiting("the first shuffle"), 0)
    for n in range(1, 400):
        told.tell(waiting("the first shuffle"), n)
    assert told.tell(waiting("12 more rows"), 400)
    assert not told.tell(waiting("11 more rows"), 401)


def test_after_a_long_wait_work_is_told() -> None:
    told = Told()
    for n in range(1, 3000):
        told.tell(waiting("rows"), n)
    quiet = 3000 - 2551
    assert quiet > 10
    assert told.tell(A, 3000), "although the next line about the wait would have been much later"
    assert not told.tell(A, 3001)


def test_short_waits_in_between_do_not_flood() -> None:
    told = Told()
    for n in range(100):
        told.tell(A if n % 2 else waiting(f"{n} rows"), n)
    assert len(told.said) <= 2 * 100 / 10 + 2


def test_share() -> None:
    assert waiting("x", 5, 20).share == 0.25
    assert waiting("x", 50, 20).share == 1.0
    assert waiting("x").share is None
    assert waiting("x", 5, 0).share is None
