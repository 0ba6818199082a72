"""The first stages: look for files, read chunks, take the picked rows out of them."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from tengen.data.format.chunk import ChunkError
from tengen.data.format.rows import Rows
from tengen.data.loader.channels import ChannelEnded
from tengen.data.loader.ledger import LoaderLedger
from tengen.data.loader.pool import Arrived, count_rows
from tengen.data.loader.sources import FileSource, FoundFile
from tengen.data.loader.splits import Split
from tengen.data.loader.stages import Incoming, Work

Read = Callable[[Path], Rows]
"""The rows of a file, with the fields that are wanted. ChunkError if it is no good."""


def watching(source: FileSource) -> Work:
    """Ticks to lists of files: all of a source that ends at the first tick, new ones at ticks of an endless source."""

    def work(incoming: Incoming) -> Iterator[list[FoundFile]]:
        for _ in incoming:
            found = source.look()
            if found:
                yield found
            if not source.endless:
                return

    return work


def reading(read: Read, readers: int, split: Split, ledger: LoaderLedger, useless: Callable[[], None]) -> Work:
    """Files to chunks that have rows, in the same order; `readers` of them are read at a time.

    `useless` is called for each file that gives no rows.
    """

    def attempt(found: FoundFile) -> Rows | None:
        try:
            return read(found.path)
        except ChunkError as error:
            ledger.reject(found, error)
            return None

    def work(incoming: Incoming) -> Iterator[Arrived]:
        pending: deque[tuple[FoundFile, Future[Rows | None]]] = deque()
        ended = False
        with ThreadPoolExecutor(readers, f"tengen-{split}-reader") as threads:
            while pending or not ended:
                found = None
                if not ended and len(pending) < readers:
                    try:
                        found = incoming.poll() if pending else incoming.get()
                    except ChannelEnded:
                        ended = True
                if found is not None:
                    pending.append((found, threads.submit(attempt, found)))
                elif pending:
                    done, future = pending.popleft()
                    rows = future.result()
                    if rows is not None:
                        ledger.accept(split, done, count_rows(rows))
                    if rows is not None and count_rows(rows):
                        yield Arrived(rows, done.old)
                    else:
                        useless()

    return work


def unpacking(incoming: Incoming) -> Iterator[Rows]:
    """`Picked` of a pool, or chunks in order, to rows. Whole chunks are not copied."""
    for item in incoming:
        rows, which = (item.rows, None) if isinstance(item, Arrived) else item
        yield rows if which is None else {name: np.take(values, which, axis=0) for name, values in rows.items()}


def length(item: Any) -> int:
    """Rows of a batch: a tuple of arrays."""
    return len(item[0])
