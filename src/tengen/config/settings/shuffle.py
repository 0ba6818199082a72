"""The section `shuffle`: how rows are drawn from the window and written in random order. See docs/shuffle.md."""

from dataclasses import dataclass

from tengen.schema import setting


@dataclass(frozen=True)
class ShuffleSettings:
    keep_target_rows: int = setting(
        600_000, "rows drawn from the window, or all of it if it has fewer", low=1, high=10**9 - 1
    )
    rows_per_file: int = setting(65_536, "rows in each file; only the last may have fewer", low=1, high=10**8)
    validation_share: float = setting(
        0.05, "share of the chunks used for validation, by a hash of their names", low=0, high=1
    )
    compress: bool = setting(False, "compress the files: fewer bytes, far more time")
    memory_bytes: int = setting(2**31, "memory for rows, for all workers together", low=2**20, high=2**50)
    workers: int | None = setting(None, "threads (null: one for each core)", low=1, high=1024)
    scratch: str | None = setting(None, "folder for intermediate files (null: next to the result)")
    keep_shuffles: int = setting(3, "newest shuffles that are never removed", low=1, high=10**6)
    lease_minutes: float = setting(
        20.0,
        "minutes without a sign of life before a reader on another machine counts as dead",
        low=2,
        high=10**6,
        change="start",
    )
