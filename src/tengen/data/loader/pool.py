"""Whole chunks in random order.

From an endless source the pool keeps the newest chunks and goes through them again and again, each pass in another
order; new chunks join the pass that is under way. From a source that ends, each chunk leaves when all its rows were
given. A chunk gives its rows in pieces, a share of them at a time and in random order, so that no row is given a second
time before all others of its chunk were.
"""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tengen.data.format.rows import Rows
from tengen.data.loader.channels import Channel


class Arrived(NamedTuple):
    """A chunk that was read."""

    rows: Rows
    old: bool = False  # older than all that came before it, not newer


class Picked(NamedTuple):
    """Some rows of a chunk, not copied yet."""

    rows: Rows
    which: np.ndarray | None  # Int[K]; None: all, in their order


@dataclass
class _Held:
    """A chunk in the pool."""

    rows: Rows  # none once newer chunks have taken its place
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
    """Takes chunks with at least one row, gives `Picked`. Random in the order in which it is filled and asked."""

    def __init__(self, chunks: int, start: int, share: float, *, endless: bool, numbers: np.random.Generator) -> None:
        """`start`: chunks before the first is drawn; a source that ends fills the pool first, or comes to its end."""
        super().__init__(chunks, "chunks")
        self._size, self._start = chunks, start if endless else chunks
        self._share, self._endless, self._numbers = share, endless, numbers
        self._chunks: deque[_Held] = deque()  # oldest first
        self._pass: list[_Held] = []  # those still to be drawn, the next one last

    @property
    def waiting(self) -> int:
        return len(self._chunks)

    def words(self) -> str:
        return f"chunks: {len(self._chunks):,} of {self._start:,} are in the pool"

    def _has_room(self) -> bool:
        return self._endless or len(self._chunks) < self._size

    def _add(self, item: Arrived) -> None:
        held = _Held(item.rows)
        if item.old:
            self._chunks.appendleft(held)
        else:
            self._chunks.append(held)
        if self._endless:
            self._pass.insert(int(self._numbers.integers(len(self._pass) + 1)), held)
            if len(self._chunks) > self._size:
                self._chunks.popleft().rows = {}  # the pass may go on for long

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


def count_rows(rows: Rows) -> int:
    """How many rows these are."""
    return len(next(iter(rows.values())))
