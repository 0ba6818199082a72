"""What the stages of the loader do with their time."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

Doing = Literal["idle", "working", "input", "output", "ended"]
"""`input` and `output`: waiting for the stage before, or for the stage behind."""

_WINDOW = 10  # seconds over which rates are taken


@dataclass(frozen=True)
class StageStats:
    """How one stage stands."""

    split: str  # empty for the stage that all splits share
    name: str
    items: int  # given to the next stage: files, chunks, blocks of rows, batches
    rows: int
    items_per_second: float  # over the last ten seconds, idle ones included
    rows_per_second: float
    working: float  # seconds
    waiting_for_input: float
    waiting_for_output: float
    doing: Doing
    since: float  # seconds for which it has done that
    waits_for: str  # in words; empty if it does not wait
    queue: int  # items that wait for this stage
    queue_capacity: int | None  # None: no limit


class Rate:
    """Events per second over the last seconds, which falls to 0 when nothing happens."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._buckets: deque[tuple[int, int]] = deque()  # whole second, events in it

    def add(self, count: int, now: float) -> None:
        second = int(now)
        if self._buckets and self._buckets[-1][0] == second:
            count += self._buckets.pop()[1]
        self._buckets.append((second, count))
        self._forget(second)

    def value(self, now: float) -> float:
        self._forget(int(now))
        span = now - max(self._began, int(now) - _WINDOW + 1)
        return sum(count for _, count in self._buckets) / span if span > 0 else 0.0

    def _forget(self, second: int) -> None:
        while self._buckets and self._buckets[0][0] <= second - _WINDOW:
            self._buckets.popleft()


class Meter:
    """Counts and times of one stage. One thread works, any thread may ask."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._doing: Doing = "idle"
        self._since = now()
        self._seconds: dict[Doing, float] = {}
        self._items = self._rows = 0
        self._item_rate, self._row_rate = Rate(self._since), Rate(self._since)

    def turn(self, doing: Doing) -> Doing:
        """Do something else from now on; what was done until now."""
        with self._lock:
            now = self._now()
            before = self._doing
            self._seconds[before] = self._seconds.get(before, 0.0) + now - self._since
            self._doing, self._since = doing, now
            return before

    @contextmanager
    def waiting(self, doing: Doing) -> Iterator[None]:
        """Around what may take its time."""
        before = self.turn(doing)
        try:
            yield
        finally:
            self.turn(before)

    def count(self, rows: int, items: int = 1) -> None:
        """One more item, of so many rows; or several."""
        with self._lock:
            now = self._now()
            self._items += items
            self._rows += rows
            self._item_rate.add(items, now)
            self._row_rate.add(rows, now)

    def stats(self, split: str, name: str, waits_for: str, queue: int, capacity: int | None) -> StageStats:
        """All of it at this moment; `waits_for` is what it waits for if it waits."""
        with self._lock:
            now = self._now()
            lasts = now - self._since
            seconds = self._seconds | {self._doing: self._seconds.get(self._doing, 0.0) + lasts}
            return StageStats(
                split=split,
                name=name,
                items=self._items,
                rows=self._rows,
                items_per_second=self._item_rate.value(now),
                rows_per_second=self._row_rate.value(now),
                working=seconds.get("working", 0.0),
                waiting_for_input=seconds.get("input", 0.0),
                waiting_for_output=seconds.get("output", 0.0),
                doing=self._doing,
                since=lasts,
                waits_for=waits_for if self._doing == "input" else _OUTPUT if self._doing == "output" else "",
                queue=queue,
                queue_capacity=capacity,
            )


_OUTPUT = "room in the stage behind it"
