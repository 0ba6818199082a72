"""A stage of the loader: a thread that takes items from a channel, works on them, and puts items into the next.

The work is a generator over incoming items, which needs to know nothing of queues, clocks and ends. Channels are
bounded, and everybody who waits at one wakes when it ends.
"""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from tengen.errors import TengenError

T = TypeVar("T")

Activity = Literal["idle", "working", "input", "output", "ended"]
"""`input` and `output`: waiting for the stage before, or for the stage after."""

_WINDOW = 10  # seconds over which rates are measured


class ChannelClosed(Exception):
    """The loader was closed."""


class ChannelEnded(Exception):
    """No more items will come."""


class StageFailed(TengenError):
    """A stage met an error that it does not handle, which is the cause of this one."""


class Channel(Generic[T]):
    """Items from one thread to another, in order. Subclasses keep more or fewer items than a queue does."""

    def __init__(self, capacity: int | None, what: str) -> None:
        """`what` names the items in messages. A capacity of None means no limit."""
        self.capacity = capacity
        self._what = what
        self._items: deque[T] = deque()
        self._ended = self._closed = False
        self._failure: StageFailed | None = None
        self._changed = threading.Condition()

    def put(self, item: T) -> None:
        """Wait for room and add an item. ChannelClosed if the channel is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._has_room())
            if self._closed:
                raise ChannelClosed
            self._add(item)
            self._changed.notify_all()

    def put_all(self, items: Iterable[T]) -> None:
        """Add items without waiting for room, all of them before the first can be taken."""
        with self._changed:
            if self._closed:
                raise ChannelClosed
            for item in items:
                self._add(item)
            self._changed.notify_all()

    def get(self, timeout: float | None = None) -> Any:
        """The next item. Raises ChannelEnded, ChannelClosed, StageFailed, or TimeoutError if none came in time."""
        with self._changed:
            if not self._changed.wait_for(self._answers, timeout):
                raise TimeoutError
            return self._next()

    def poll(self) -> Any | None:
        """The next item if there is one, else None. Raises as `get` does."""
        with self._changed:
            return self._next() if self._answers() else None

    def end(self) -> None:
        """Nothing more will come. Items that are there can still be taken."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def fail(self, error: StageFailed) -> None:
        """Nothing more will come, because of this error, which is raised at once wherever items are taken."""
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()

    def close(self) -> None:
        """Wake everybody who waits here."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def waiting(self) -> int:
        return len(self._items)

    def words(self) -> str:
        """What a reader of this channel waits for."""
        return self._what

    def _answers(self) -> bool:
        return self._closed or self._failure is not None or self._ended or self._ready()

    def _next(self) -> Any:
        if self._closed:
            raise ChannelClosed
        if self._failure is not None:
            raise self._failure
        if not self._ready():
            raise ChannelEnded
        item = self._take()
        self._changed.notify_all()
        return item

    def _has_room(self) -> bool:
        return self.capacity is None or len(self._items) < self.capacity

    def _add(self, item: T) -> None:
        self._items.append(item)

    def _ready(self) -> bool:
        return bool(self._items)

    def _take(self) -> Any:
        return self._items.popleft()


class Ticks(Channel[None]):
    """Gives None at once, and then at intervals of some seconds."""

    def __init__(self, seconds: float, words: Callable[[], str]) -> None:
        super().__init__(0, "")
        self._pause, self._words = seconds, words
        self._first = True

    def get(self, timeout: float | None = None) -> None:
        with self._changed:
            if not self._first:
                self._changed.wait_for(lambda: self._closed, self._pause)
            self._first = False
            if self._closed:
                raise ChannelClosed

    def words(self) -> str:
        return f"new files: {self._words()}, looked at every {self._pause:g} s"


@dataclass(frozen=True)
class StageStats:
    split: str  # empty for the stage that all splits share
    name: str
    items: int  # given to the next stage: files, chunks, blocks of rows, batches
    rows: int
    items_per_second: float  # over the last ten seconds, idle ones included
    rows_per_second: float
    working: float  # seconds
    waiting_for_input: float
    waiting_for_output: float
    doing: Activity
    since: float  # seconds for which it has done that
    waits_for: str  # in words; empty if it does not wait
    queue: int  # items that wait for this stage
    queue_capacity: int | None  # None: no limit


class Meter:
    """Counts and times of one stage. One thread works, any thread may ask."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._doing: Activity = "idle"
        self._since = now()
        self._seconds: dict[Activity, float] = {}
        self._began = self._since
        self._items = self._rows = 0
        self._recent: deque[tuple[float, int, int]] = deque()  # time, items and rows of the last seconds

    def turn(self, doing: Activity) -> Activity:
        """Start another activity; returns the one before."""
        with self._lock:
            now = self._now()
            before = self._doing
            self._seconds[before] = self._seconds.get(before, 0.0) + now - self._since
            self._doing, self._since = doing, now
            return before

    @contextlib.contextmanager
    def waiting(self, doing: Activity) -> Iterator[None]:
        before = self.turn(doing)
        try:
            yield
        finally:
            self.turn(before)

    def count(self, rows: int, items: int = 1) -> None:
        with self._lock:
            now = self._now()
            self._items += items
            self._rows += rows
            self._recent.append((now, items, rows))
            self._forget(now)

    def stats(self, split: str, name: str, waits_for: str, queue: int, capacity: int | None) -> StageStats:
        """The figures at this moment; `waits_for` is what it waits for if it waits for input."""
        with self._lock:
            now = self._now()
            lasts = now - self._since
            seconds = self._seconds | {self._doing: self._seconds.get(self._doing, 0.0) + lasts}
            self._forget(now)
            span = min(now - self._began, _WINDOW) or 1.0
            waits = {"input": waits_for, "output": "room in the stage behind it"}
            return StageStats(
                split=split,
                name=name,
                items=self._items,
                rows=self._rows,
                items_per_second=sum(items for _, items, _ in self._recent) / span,
                rows_per_second=sum(rows for *_, rows in self._recent) / span,
                working=seconds.get("working", 0.0),
                waiting_for_input=seconds.get("input", 0.0),
                waiting_for_output=seconds.get("output", 0.0),
                doing=self._doing,
                since=lasts,
                waits_for=waits.get(self._doing, ""),
                queue=queue,
                queue_capacity=capacity,
            )

    def _forget(self, now: float) -> None:
        while self._recent and self._recent[0][0] <= now - _WINDOW:
            self._recent.popleft()


class Stage:
    """Begins to work at `start`, and ends when its input does, when a channel is closed, or when it fails.

    A failure passes on to the stages behind it, and so to the caller who waits for a batch. Its work gets the stage
    itself, which gives the items that come in, and times the waiting for them.
    """

    def __init__(
        self,
        split: str,
        name: str,
        work: "Callable[[Stage], Iterator[Any]]",
        inbox: Channel[Any],
        outbox: Channel[Any],
        *,
        rows: Callable[[Any], int] = lambda _: 0,
        items: Callable[[Any], int] = lambda _: 1,
        words: Callable[[], str] | None = None,
    ) -> None:
        """`rows`, `items`: what an outgoing item counts as; `words`: what it waits for, if not the inbox."""
        self.split, self.name = split, name
        self._work, self._inbox, self._outbox = work, inbox, outbox
        self._rows, self._items = rows, items
        self._words = words or inbox.words
        self._meter = Meter()
        self._thread = threading.Thread(target=self._run, name=f"tengen-{split or 'all'}-{name}", daemon=True)

    def __iter__(self) -> Iterator[Any]:
        with contextlib.suppress(ChannelEnded):
            while True:
                yield self.get()

    def get(self) -> Any:
        """The next item that comes in. ChannelEnded when there will be none."""
        with self._meter.waiting("input"):
            return self._inbox.get()

    def poll(self) -> Any | None:
        """The next item if it is there already. ChannelEnded when there will be none."""
        return self._inbox.poll()

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        """Return when it has ended. Its channels must have been closed."""
        if self._thread.ident is not None:
            self._thread.join()

    def stats(self) -> StageStats:
        return self._meter.stats(self.split, self.name, self._words(), self._inbox.waiting, self._inbox.capacity)

    def _run(self) -> None:
        self._meter.turn("working")
        try:
            for item in self._work(self):
                self._meter.count(self._rows(item), self._items(item))
                with self._meter.waiting("output"):
                    self._outbox.put(item)
                del item  # it may be large, and the next may be long in coming
            self._outbox.end()
        except ChannelClosed:
            pass
        except StageFailed as error:
            self._outbox.fail(error)
        except BaseException as error:  # the caller who waits for a batch must see it, whatever it is
            failed = StageFailed(f"{self.split or 'loader'}: {self.name} failed: {type(error).__name__}: {error}")
            failed.__cause__ = error
            self._outbox.fail(failed)
        finally:
            self._meter.turn("ended")
