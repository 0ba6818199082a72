"""What happens to rows between files and batches: the pool mixes chunks, the reservoir mixes rows, batches are cut."""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from tengen.data.format.rows import RowFormat, Rows
from tengen.data.loader.sources import FoundFile
from tengen.data.loader.stages import Channel

Batch = tuple[np.ndarray, ...]
"""One array per field of the format, in the order of `RowFormat.fields`, with first axis N. Planes are packed."""

_REMEMBERED = 100_000  # skipped files; there may be millions
_ALIGNED = 64  # bytes; JAX on a CPU uses such arrays without a copy


def count_rows(rows: Rows) -> int:
    return len(next(iter(rows.values())))


class NewestFiles(Channel[FoundFile]):
    """Files to be read: the newest ones of an endless source, since older ones would not stay in the pool.

    Nobody waits for room: older files are skipped when newer ones come, and can be brought back.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size, "files")
        self.passed_over = 0
        self._size = size
        self._older: deque[FoundFile] = deque(maxlen=_REMEMBERED)  # newest last

    def bring_back(self) -> None:
        """Make the newest skipped file the next one, because another could not be used."""
        with self._changed:
            if self._older:
                self._items.appendleft(self._older.pop()._replace(old=True))
                self.passed_over -= 1
                self._changed.notify_all()

    def _has_room(self) -> bool:
        return True

    def _add(self, item: FoundFile) -> None:
        self._items.append(item)
        if len(self._items) > self._size:
            self._older.append(self._items.popleft())
            self.passed_over += 1


class Arrived(NamedTuple):
    """A chunk that was read."""

    rows: Rows
    old: bool = False  # older than all that came before it, not newer


class Picked(NamedTuple):
    """Some rows of a chunk, not copied yet."""

    rows: Rows
    which: np.ndarray | None  # Int[K]; None: all, in their order


@dataclass
class _PooledChunk:
    rows: Rows  # empty once newer chunks have taken its place
    order: np.ndarray | None = None  # a permutation of its rows, while it gives them in pieces
    given: int = 0  # rows of that order

    def piece(self, share: float, numbers: np.random.Generator) -> Picked:
        """The next rows. `order` is None when it was the last piece."""
        count = count_rows(self.rows)
        size = max(round(share * count), 1)
        if size >= count:
            return Picked(self.rows, None)
        if self.order is None:
            self.order, self.given = numbers.permutation(count), 0
        which = self.order[self.given : self.given + size]
        self.given += size
        if self.given >= count:
            self.order = None
        return Picked(self.rows, which)


class Pool(Channel[Arrived]):
    """Whole chunks in random order: takes chunks with at least one row, gives `Picked`.

    From an endless source the pool keeps the newest chunks and goes through them for ever, each pass in another order;
    new chunks join the current pass. From a source that ends, each chunk leaves when all its rows were given.
    """

    def __init__(self, chunks: int, start: int, share: float, *, endless: bool, numbers: np.random.Generator) -> None:
        """`start`: chunks before the first is drawn; a source that ends fills the pool first, or comes to its end."""
        super().__init__(chunks, "chunks")
        self._size, self._start = chunks, start if endless else chunks
        self._share, self._endless, self._numbers = share, endless, numbers
        self._chunks: deque[_PooledChunk] = deque()  # oldest first
        self._pass: list[_PooledChunk] = []  # those still to be drawn, the next one last

    @property
    def waiting(self) -> int:
        return len(self._chunks)

    def words(self) -> str:
        return f"chunks: {len(self._chunks):,} of {self._start:,} are in the pool"

    def _has_room(self) -> bool:
        return self._endless or len(self._chunks) < self._size

    def _add(self, item: Arrived) -> None:
        held = _PooledChunk(item.rows)
        if item.old:
            self._chunks.appendleft(held)
        else:
            self._chunks.append(held)
        if self._endless:
            self._pass.insert(int(self._numbers.integers(len(self._pass) + 1)), held)
            if len(self._chunks) > self._size:
                self._chunks.popleft().rows = {}  # frees the memory, since the pass may last long

    def _ready(self) -> bool:
        return bool(self._chunks) and (len(self._chunks) >= self._start or self._ended)

    def _take(self) -> Picked:
        return self._next_of_pass() if self._endless else self._next_of_all()

    def _next_of_pass(self) -> Picked:
        while True:
            if not self._pass:
                chunks = list(self._chunks)
                self._pass = [chunks[place] for place in self._numbers.permutation(len(chunks))]
            held = self._pass.pop()
            if held.rows:
                return held.piece(self._share, self._numbers)

    def _next_of_all(self) -> Picked:
        place = int(self._numbers.integers(len(self._chunks)))
        held = self._chunks[place]
        picked = held.piece(self._share, self._numbers)
        if held.order is None:
            del self._chunks[place]
        return picked


class Batches:
    """Makes batches of `size` rows. Each is new memory that is never written again, so callers may keep it."""

    def __init__(self, form: RowFormat, size: int, rest: Literal["short", "pad", "drop"]) -> None:
        self.size = size
        self.names = tuple(form.fields)
        self._fields = tuple(form.fields.values())
        self._rest = rest

    def empty(self) -> Batch:
        """Uninitialised arrays of `size` rows, all in one block of memory."""
        lengths = [self.size * math.prod(shape) * dtype.itemsize for shape, dtype in self._fields]
        places = np.cumsum([0, *(-(-length // _ALIGNED) * _ALIGNED for length in lengths)])
        memory = np.empty(int(places[-1]) + _ALIGNED, np.uint8)
        memory = memory[-memory.ctypes.data % _ALIGNED :]
        return tuple(
            memory[place : place + length].view(dtype).reshape(self.size, *shape)
            for place, length, (shape, dtype) in zip(places, lengths, self._fields, strict=False)
        )

    def finish(self, batch: Batch, filled: int) -> Iterator[Batch]:
        """The batch with its first `filled` rows; the rest is cut off, padded, or the batch dropped."""
        if filled == self.size:
            yield batch
        elif self._rest == "short" and filled:
            yield tuple(values[:filled] for values in batch)
        elif self._rest == "pad" and filled:
            for values in batch:
                values[filled:] = 0
            yield batch

    def in_order(self, incoming: Iterable[Rows]) -> Iterator[Batch]:
        """Blocks of rows to batches, every row in its turn."""
        batch, filled = self.empty(), 0
        for rows in incoming:
            count, start = count_rows(rows), 0
            while start < count:
                size = min(self.size - filled, count - start)
                for name, values in zip(self.names, batch, strict=True):
                    values[filled : filled + size] = rows[name][start : start + size]
                start, filled = start + size, filled + size
                if filled == self.size:
                    yield batch
                    batch, filled = self.empty(), 0
        yield from self.finish(batch, filled)


class Reservoir:
    """Mixes rows in a table that is always full: each new row replaces a random one, which leaves.

    Two stages share the table, on two threads. `mix` puts rows into free slots and chooses the slots of the next batch;
    `gather` copies those out and frees them. No slot belongs to both, so no lock is needed. Memory: `rows` rows, and a
    few batches on their way.
    """

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

    def mix(self, incoming: Iterable[Rows]) -> Iterator[np.ndarray]:
        """Blocks of rows to Int[B]: the slots of a batch. At the end all that remain, so each row is in one batch."""
        size = self._batches.size
        for rows in incoming:
            for start in range(0, count_rows(rows), size):
                self._put({name: values[start : start + size] for name, values in rows.items()})
                while self._count >= self._full:
                    yield self._draw(size)
        while self._count:
            yield self._draw(min(size, self._count))

    def gather(self, incoming: Iterable[np.ndarray]) -> Iterator[Batch]:
        for slots in incoming:
            batch = self._batches.empty()
            for name, values in zip(self._batches.names, batch, strict=True):
                if name in self._table:
                    # `clip` because `raise` would copy once more; all slots are valid.
                    np.take(self._table[name], slots, axis=0, out=values[: len(slots)], mode="clip")
            self._freed.append(slots)
            yield from self._batches.finish(batch, len(slots))

    def words(self) -> str:
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
        """Random held slots, which are then no longer held."""
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
