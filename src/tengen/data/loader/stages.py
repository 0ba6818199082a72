"""A stage of the loader: a thread that takes items, works on them, and gives items.

The work itself is a generator over what comes in, so it can be tested without threads, and knows nothing of queues,
clocks or ends.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from tengen.data.loader.channels import Channel, ChannelClosed, ChannelEnded, StageFailed
from tengen.data.loader.meters import Meter, StageStats


class Incoming(Protocol):
    """What comes in: the next item if one is there, or all items, waiting for each."""

    def poll(self) -> Any | None: ...

    def get(self) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...


Work = Callable[[Incoming], Iterator[Any]]


class Outgoing(Protocol):
    """Where items go: a channel, or several."""

    def put(self, item: Any) -> None: ...

    def end(self) -> None: ...

    def fail(self, error: StageFailed) -> None: ...


class Metered:
    """A channel whose reader's waiting is timed."""

    def __init__(self, channel: Channel[Any], meter: Meter) -> None:
        self._channel, self._meter = channel, meter

    def poll(self) -> Any | None:
        """The next item if there is one. Ended when there will be none."""
        return self._channel.poll()

    def get(self) -> Any:
        """The next item. Ended when there is none."""
        with self._meter.waiting("input"):
            return self._channel.get()

    def __iter__(self) -> Iterator[Any]:
        while True:
            try:
                item = self.get()
            except ChannelEnded:
                return
            yield item


class Stage:
    """Begins to work at `start`, and ends when its input does, when a channel is closed, or when it fails.

    A failure goes on to the stages behind it, and so to whoever asks for a batch.
    """

    def __init__(
        self,
        split: str,
        name: str,
        work: Work,
        inbox: Channel[Any],
        outbox: Outgoing,
        *,
        rows: Callable[[Any], int] = lambda _: 0,
        items: Callable[[Any], int] = lambda _: 1,
        words: Callable[[], str] | None = None,
    ) -> None:
        """`rows`, `items`: how many something counts as; `words`: what it waits for, if the inbox knows no better."""
        self.split, self.name = split, name
        self._work, self._inbox, self._outbox = work, inbox, outbox
        self._rows, self._items = rows, items
        self._words = words or inbox.words
        self._meter = Meter()
        self._thread = threading.Thread(target=self._run, name=f"tengen-{split or 'all'}-{name}", daemon=True)

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
            for item in self._work(Metered(self._inbox, self._meter)):
                self._meter.count(self._rows(item), self._items(item))
                with self._meter.waiting("output"):
                    self._outbox.put(item)
                del item  # it may be large, and the next may be long in coming
            self._outbox.end()
        except ChannelClosed:
            pass
        except StageFailed as error:
            self._outbox.fail(error)
        except BaseException as error:  # all of it belongs to whoever waits for a batch
            failed = StageFailed(f"{self.split or 'loader'}: {self.name} failed: {type(error).__name__}: {error}")
            failed.__cause__ = error
            self._outbox.fail(failed)
        finally:
            self._meter.turn("ended")
