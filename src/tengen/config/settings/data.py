"""The section `data`: the training window, chunks and records; and the settings of the loader."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tengen.schema import REQUIRED, setting


@dataclass(frozen=True)
class WindowSettings:
    """How many of the newest rows are trained on. The defaults are KataGo's, for a run on one machine."""

    min_rows: int = setting(100_000, "rows before the window begins to slide", low=1, high=10**12)
    max_rows: int | None = setting(None, "largest window (null: no limit)", low=1, high=10**12)
    exponent: float = setting(
        0.65, "the window grows with the rows of the run to this power (1: linearly)", low=0.01, high=1
    )
    growth: float = setting(0.4, "rows by which the window grows per new row at first", low=0, high=1)
    scale: int | None = setting(
        50_000, "rows over which the growth slows down; fewer: sooner (null: min_rows)", low=1, high=10**12
    )

    def check_together(self) -> Iterator[tuple[str, str]]:
        if self.max_rows is not None and self.max_rows < self.min_rows:
            yield "max_rows", f"expected at least min_rows, which is {self.min_rows}, got {self.max_rows}"


@dataclass(frozen=True)
class DataSection:
    window: WindowSettings = setting(REQUIRED, "how many of the newest rows are trained on")
    ring_rows: int = setting(
        REQUIRED, "rows kept on the device; the window is never larger", low=64, high=10**9, change="start"
    )
    first_rows: int = setting(REQUIRED, "rows before training begins", low=1, high=10**9)
    chunk_rows: int = setting(REQUIRED, "approximate rows in a file; games are never split", low=1, high=10**7)
    max_chunk_rows: int = setting(
        REQUIRED, "larger files are not read", low=10_000, high=10**8, before=1_000_000, change="start"
    )
    format: Literal["tengen", "katago", "lc0"] = setting(
        REQUIRED,
        "files of self-play: Tengen's own, or those that KataGo or Lc0 train on",
        before="tengen",
        change="start",
    )
    record_share: float = setting(REQUIRED, "share of the games saved as game records", low=0, high=1)


@dataclass(frozen=True)
class DiffFocusSettings:
    """Which positions of Lc0's chunks are used: rather those whose value or policy the search has changed.

    A position is used with the probability (difference * slope + least) ** power, at most 1, where the difference is
    (q_weight * |best_q - orig_q| + policy_kld) / (q_weight + policy_scale). If it is unknown, the position is used.
    """

    slope: float = setting(1.0, "by how much a difference of 1 raises the probability", low=0, high=1e6)
    least: float = setting(0.0, "probability without a difference", low=0, high=1)
    power: float = setting(1.0, "exponent", low=0, high=100)
    q_weight: float = setting(6.0, "weight of the difference in value", low=0, high=1e6)
    policy_scale: float = setting(3.5, "what is added to q_weight in the divisor", low=1e-6, high=1e6)


@dataclass(frozen=True)
class LoaderSettings:
    """How files become batches. docs/loader.md explains the costs."""

    batch: int = setting(4096, "rows in a batch", low=1, high=2**20)
    rest: Literal["short", "pad", "drop"] = setting(
        "short", "the last rows, if too few for a batch: a short batch, one padded with rows of weight 0, or none"
    )
    validation: float = setting(0.0, "share of the files for validation, chosen by their names", low=0, high=0.9)
    test: float = setting(0.0, "share of the files for tests, chosen by their names", low=0, high=0.9)
    pool_chunks: int = setting(
        0, "newest chunks in memory that rows are drawn from (0: each chunk once, in order)", low=0, high=10**7
    )
    start_chunks: int = setting(1, "chunks in the pool before an endless source is used", low=1, high=10**7)
    chunk_share: float = setting(1.0, "share of a chunk's rows used each time it is drawn", low=1e-6, high=1)
    reservoir_rows: int = setting(0, "rows mixed at a time (0: in order)", low=0, high=10**9)
    readers: int = setting(2, "threads that read files", low=1, high=64)
    queue: int = setting(4, "items that may wait between two stages", low=1, high=1000)
    poll_seconds: float = setting(1.0, "seconds between two checks of a folder", low=0.001, high=3600)
    seed: int = setting(0, "seed of its random numbers", low=0, high=2**63 - 1)

    def check_together(self) -> Iterator[tuple[str, str]]:
        yield from shares_too_large(self.validation, self.test)
        if self.pool_chunks and self.start_chunks > self.pool_chunks:
            yield "start_chunks", f"expected at most pool_chunks, which is {self.pool_chunks}, got {self.start_chunks}"


def shares_too_large(validation: float, test: float) -> Iterator[tuple[str, str]]:
    """(key, message) if nothing is left to train on."""
    if validation + test >= 1:
        yield "test", f"expected less than {1 - validation:g}, since validation has the rest, got {test:g}"
