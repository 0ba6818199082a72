"""Queues between the stages of the loader: bounded, and everybody who waits at one wakes when it ends."""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from tengen.errors import TengenError

T = TypeVar("T")


class ChannelClosed(Exception):
    """The loader was closed. No stage has anything more to do."""


class ChannelEnded(Exception):
    """There is nothing more, and there will be nothing more."""


class StageFailed(TengenError):
    """A stage came upon something that it was not made for; the cause says what."""


class Channel(Generic[T]):
    """Items from one thread to another, in order. Others, such as `Pool`, keep more or less than a queue does."""

    def __init__(self, capacity: int | None, what: str) -> None:
        """`what` items are, in words. A capacity of None is no limit."""
        self.capacity = capacity
        self._what = what
        self._items: deque[T] = deque()
        self._ended = self._closed = False
        self._failure: StageFailed | None = None
        self._changed = threading.Condition()

    def put(self, item: T) -> None:
        """Wait for room and add an item. Closed if nobody will take it."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._has_room())
            if self._closed:
                raise ChannelClosed
            self._add(item)
            self._changed.notify_all()

    def put_all(self, items: Iterable[T]) -> None:
        """Add items where nobody waits for room, all before the first of them can be taken."""
        with self._changed:
            if self._closed:
                raise ChannelClosed
            for item in items:
                self._add(item)
            self._changed.notify_all()

    def get(self, timeout: float | None = None) -> Any:
        """The next item. Ended, Closed, StageFailed, or TimeoutError if there is none in time."""
        with self._changed:
            over = self._changed.wait_for(
                lambda: self._closed or self._failure or self._ended or self._ready(), timeout
            )
            if not over:
                raise TimeoutError
            return self._next()

    def poll(self) -> Any | None:
        """The next item if there is one, else None. Raises as `get` does."""
        with self._changed:
            ready = self._closed or self._failure or self._ended or self._ready()
            return self._next() if ready else None

    def end(self) -> None:
        """Nothing more will come. What is there can still be taken."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def fail(self, error: StageFailed) -> None:
        """Nothing more will come, because of this; whoever takes from here must know at once."""
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()

    def close(self) -> None:
        """Wake everybody: this is over."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def waiting(self) -> int:
        """Items that are there."""
        return len(self._items)

    def words(self) -> str:
        """What somebody waits for who takes from here."""
        return self._what

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
    """Gives None at once, and then every so many seconds."""

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
