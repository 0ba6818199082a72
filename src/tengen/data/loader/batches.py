"""Batches: for each field an array, all of them in one block of memory."""

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np

from tengen.data.format.rows import RowFormat, Rows
from tengen.data.loader.pool import count_rows
from tengen.data.loader.stages import Incoming

Batch = tuple[np.ndarray, ...]
"""One array per field of the format, in the order of `RowFormat.fields`, with first axis N. Planes are packed."""

Rest = Literal["short", "pad", "drop"]
_ALIGNED = 64  # bytes; JAX on a CPU takes such arrays as they are


class Batches:
    """Makes batches of `size` rows. Each is new memory, never written again: whoever has it may keep it."""

    def __init__(self, form: RowFormat, size: int, rest: Rest) -> None:
        self.size = size
        self.names = tuple(form.fields)
        self._fields = tuple(form.fields.values())
        self._rest = rest

    def empty(self) -> Batch:
        """Arrays of `size` rows with anything in them."""
        lengths = [self.size * math.prod(shape) * dtype.itemsize for shape, dtype in self._fields]
        places = np.cumsum([0, *(-(-length // _ALIGNED) * _ALIGNED for length in lengths)])
        memory = np.empty(int(places[-1]) + _ALIGNED, np.uint8)
        memory = memory[-memory.ctypes.data % _ALIGNED :]
        return tuple(
            memory[place : place + length].view(dtype).reshape(self.size, *shape)
            for place, length, (shape, dtype) in zip(places, lengths, self._fields, strict=False)
        )

    def finish(self, batch: Batch, filled: int) -> Iterator[Batch]:
        """The batch with its first `filled` rows, and the rest as it should be."""
        if filled == self.size:
            yield batch
        elif self._rest == "short" and filled:
            yield tuple(values[:filled] for values in batch)
        elif self._rest == "pad" and filled:
            for values in batch:
                values[filled:] = 0
            yield batch

    def in_order(self, incoming: Incoming) -> Iterator[Batch]:
        """Blocks of rows to batches, every row in its turn."""
        batch, filled = self.empty(), 0
        for rows in incoming:
            count, start = count_rows(rows), 0
            while start < count:
                size = min(self.size - filled, count - start)
                self._copy(rows, start, batch, filled, size)
                start, filled = start + size, filled + size
                if filled == self.size:
                    yield batch
                    batch, filled = self.empty(), 0
        yield from self.finish(batch, filled)

    def _copy(self, rows: Rows, start: int, batch: Batch, filled: int, size: int) -> None:
        for name, values in zip(self.names, batch, strict=True):
            values[filled : filled + size] = rows[name][start : start + size]
