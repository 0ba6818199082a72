"""What the rows of a run are told."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tengen.schema import setting


@dataclass(frozen=True)
class WindowSettings:
    """How many of the newest rows are learnt from. The defaults are KataGo's, for a run on one machine."""

    min_rows: int = setting(100_000, "rows before the window begins to slide", low=1, high=10**12)
    max_rows: int | None = setting(None, "the window never has more (null: no limit)", low=1, high=10**12)
    exponent: float = setting(
        0.65, "the window grows with the rows of the run to this power, 1 is evenly", low=0.01, high=1
    )
    growth: float = setting(0.4, "rows that the window grows by per new row, at first", low=0, high=1)
    scale: int | None = setting(
        50_000, "rows over which that slows down, fewer is sooner (null: as min_rows)", low=1, high=10**12
    )

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for what does not go together."""
        if self.max_rows is not None and self.max_rows < self.min_rows:
            yield "max_rows", f"expected at least min_rows, which is {self.min_rows}, got {self.max_rows}"


@dataclass(frozen=True)
class LoaderSettings:
    """How files become batches. docs/loader.md says what each of these costs."""

    batch: int = setting(4096, "rows in a batch", low=1, high=2**20)
    rest: Literal["short", "pad", "drop"] = setting(
        "short", "the last rows, if too few for a batch: a short one, one filled up with rows of weight 0, or none"
    )
    validation: float = setting(0.0, "share of the files for validation, chosen by their names", low=0, high=0.9)
    test: float = setting(0.0, "share of the files for tests, chosen by their names", low=0, high=0.9)
    pool_chunks: int = setting(
        0, "newest chunks that rows are drawn from, held in memory (0: each chunk once, in order)", low=0, high=10**7
    )
    start_chunks: int = setting(1, "chunks in the pool of an endless source before it is drawn from", low=1, high=10**7)
    chunk_share: float = setting(1.0, "share of a chunk's rows taken each time it is drawn", low=1e-6, high=1)
    reservoir_rows: int = setting(0, "rows that are mixed before they are batches (0: in order)", low=0, high=10**9)
    readers: int = setting(2, "threads that read files", low=1, high=64)
    queue: int = setting(4, "items that may wait between two stages", low=1, high=1000)
    poll_seconds: float = setting(1.0, "seconds between two looks at a folder", low=0.001, high=3600)
    seed: int = setting(0, "of all that is random in it", low=0, high=2**63 - 1)

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for what does not go together."""
        if self.validation + self.test >= 1:
            yield (
                "test",
                f"expected less than {1 - self.validation:g}, since validation has the rest, got {self.test:g}",
            )
        if self.pool_chunks and self.start_chunks > self.pool_chunks:
            yield "start_chunks", f"expected at most pool_chunks, which is {self.pool_chunks}, got {self.start_chunks}"
