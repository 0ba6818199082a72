"""Rows in random order: a table that is always full, out of which random rows go as new ones come.

Two stages share the table, on two threads. `mix` puts rows into free slots and chooses which slots are the next batch;
`gather` copies those out and frees them. No slot is ever with both, so no lock is needed.
"""

import math
from collections import deque
from collections.abc import Iterator

import numpy as np

from tengen.data.format.rows import RowFormat, Rows
from tengen.data.loader.batches import Batch, Batches
from tengen.data.loader.pool import count_rows
from tengen.data.loader.stages import Incoming


class Reservoir:
    """Mixes `rows` rows. Memory: those, and a few batches that are on their way."""

    def __init__(self, form: RowFormat, rows: int, batches: Batches, queue: int, numbers: np.random.Generator) -> None:
        """`queue`: batches that may wait between `mix` and `gather`."""
        self._batches, self._numbers = batches, numbers
        self._full = rows + batches.size  # then a batch is drawn, and `rows` remain
        # On their way: those that wait, one that is gathered, one that is to wait, and the rows that come in.
        capacity = rows + (queue + 3) * batches.size
        self._table = {
            name: np.empty((capacity, *shape), dtype)
            for name, (shape, dtype) in form.fields.items()
            if math.prod(shape)
        }
        self._free = np.arange(capacity)
        self._freed: deque[np.ndarray] = deque()  # by the other thread
        self._held = np.empty(capacity, np.int64)  # slots with rows that are in no batch yet, in no order
        self._count = 0  # of those

    def mix(self, incoming: Incoming) -> Iterator[np.ndarray]:
        """Blocks of rows to Int[B]: the slots of a batch. At the end all that remain, so each row is in one batch."""
        size = self._batches.size
        for rows in incoming:
            for start in range(0, count_rows(rows), size):
                self._put({name: values[start : start + size] for name, values in rows.items()})
                while self._count >= self._full:
                    yield self._draw(size)
        while self._count:
            yield self._draw(min(size, self._count))

    def gather(self, incoming: Incoming) -> Iterator[Batch]:
        """Slots to batches."""
        for slots in incoming:
            batch = self._batches.empty()
            for name, values in zip(self._batches.names, batch, strict=True):
                if name in self._table:
                    # `clip` because `raise` would copy once more; all slots are good.
                    np.take(self._table[name], slots, axis=0, out=values[: len(slots)], mode="clip")
            self._freed.append(slots)
            yield from self._batches.finish(batch, len(slots))

    def words(self) -> str:
        """What `mix` waits for."""
        return f"rows: {self._count:,} of {self._full:,} are there"

    def _put(self, rows: Rows) -> None:
        while self._freed:
            self._free = np.concatenate([self._free, self._freed.popleft()])
        count = count_rows(rows)
        slots, self._free = self._free[:count], self._free[count:]
        for name, table in self._table.items():
            _items(table)[slots] = _items(np.ascontiguousarray(rows[name]))
        self._held[self._count : self._count + count] = slots
        self._count += count

    def _draw(self, count: int) -> np.ndarray:
        """Random ones of the slots that are held, which are then no longer held."""
        places = self._numbers.choice(self._count, count, replace=False)
        slots = self._held[places]
        self._count -= count
        # The last slots move to where others were taken out.
        stays = np.ones(count, bool)
        stays[places[places >= self._count] - self._count] = False
        self._held[places[places < self._count]] = self._held[self._count : self._count + count][stays]
        return slots


def _items(values: np.ndarray) -> np.ndarray:
    """The same memory as one item per row, which NumPy assigns by index three times as fast."""
    return values.reshape(len(values), -1).view(f"V{values[:1].nbytes}").reshape(-1)
