"""Drives one part until it is done or interrupted, and always shows what it does or waits for."""

import errno
import os
import time
from collections.abc import Callable
from typing import Any

from tengen.errors import TengenError
from tengen.run.part import Part, Progress, Stop, waiting
from tengen.run.part_status import StatusWriter, alike

NO_SPACE = "space on the disk"
"""What a part that waits for space says begins with this."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_LOOK = 0.1  # seconds between two checks whether to stop
_LONGEST = 600.0  # seconds between two lines about the same wait
Say = Callable[[str], None]


def run(
    part: Part,
    status: StatusWriter,
    stop: Stop,
    say: Say,
    poll: float,
    *,
    once: bool = False,
    look: Callable[[], Any] = lambda: None,
) -> Progress:
    """Call `run_once` until the part has ended or `stop` says so; with `once`, until it has nothing more to do.

    What the part does is shown in its status file and, when it changes, through `say`. While the disk is full, the part
    waits. `look` returns the run's new settings when they have changed.
    """
    speaker = Speaker(say)
    last = worked = Progress("starting")

    def show(progress: Progress) -> None:
        status.show(progress)
        speaker.tell(progress, status.seconds)

    part.show = show
    while not stop():
        if (config := look()) is not None:
            poll = config.ring.poll_seconds
            part.change(config)
        last = attempt(part.run_once)
        idle = once and not last.worked and not last.words.startswith(NO_SPACE)
        if idle and worked.words != "starting":
            break
        show(last)
        worked = last if last.worked else worked
        if last.ended or idle:
            break
        if not last.worked:
            pause(poll, stop)
    patiently(part.flush, show, stop, poll)
    return worked if once and worked.words != "starting" else last


def patiently(write: Callable[[], object], show: Callable[[Progress], object], stop: Stop, poll: float) -> None:
    """Write, and wait for space if there is none; what cannot be written before the end is an error."""
    done = Progress("written")
    while (found := attempt(lambda: (write(), done)[1])) is not done:
        if stop():
            write()  # raises an error about what is lost
            return
        show(found)
        pause(poll, stop)


class Once:
    """Prints each message only once."""

    def __init__(self, say: Say) -> None:
        self._say, self._said = say, set[str]()

    def __call__(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._say(text)


def attempt(work: Callable[[], Progress]) -> Progress:
    """The result of the work, or if the disk is full, a report that it waits for space."""
    try:
        return work()
    except TengenError as error:
        if not is_full(error):
            raise
        return waiting(f"{NO_SPACE}: {error}")


def is_full(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if any(os.strerror(number) in str(error) for number in _FULL):  # libraries may raise other errors
            return True
        error = error.__cause__ or error.__context__
    return False


def pause(seconds: float, stop: Stop) -> None:
    end = time.monotonic() + seconds
    while not stop() and (left := end - time.monotonic()) > 0:
        time.sleep(min(left, _LOOK))


class Speaker:
    """Prints what a part does: at once when it begins to wait for something else, and now and then while it works."""

    def __init__(self, say: Say, every: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._every, self._clock = say, every, clock
        self._before = Progress("")  # the last that was printed
        self._printed = self._due = -every
        self._pause = every  # until the next line about the same wait

    def tell(self, progress: Progress, seconds: float = 0.0) -> None:
        now, before = self._clock(), self._before
        begins = not progress.worked and (before.worked or not alike(before.words, progress.words))
        # After a long wait with few lines, work is printed at once.
        due = self._printed + self._every if progress.worked else self._due
        if not (begins or progress.event or progress.ended or now >= due):
            return
        since = f" (for {seconds:,.0f} s)" if not progress.worked and seconds >= self._every else ""
        self._say(("" if progress.worked else "waiting: ") + progress.words + since)
        self._pause = self._every if progress.worked or begins else min(2 * self._pause, _LONGEST)
        self._before, self._printed, self._due = progress, now, now + self._pause
