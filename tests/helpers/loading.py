"""What the tests of the loader share: files whose rows are known, and rows that know where they are from."""

import os
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from tengen.data.format.chunk import write_chunk
from tengen.data.format.rows import Rows
from tengen.data.loader.loader import Loader, LoaderTimeout
from tengen.data.loader.mixing import Batch
from tengen.data.loader.sources import Split
from tests.helpers import rows as made
from tests.helpers.patience import LONG, eventually


def write(path: Path, count: int, seed: int, age: int = 0) -> Path:
    """A chunk with `made.rows(count, seed)` that seems `age` seconds old, so that looks find files in a known order."""
    hidden = path.with_name(f".{path.name}")
    write_chunk(hidden, made.FORM, made.rows(count, seed), made.GAME, network="n")
    then = time.time_ns() - age * 10**9
    os.utime(hidden, ns=(then, then))
    hidden.rename(path)
    return path


def files(folder: Path, counts: Iterable[int]) -> list[Path]:
    """Chunks with so many rows, oldest first; the seed of each is its number."""
    return [write(folder / f"{seed:03}.npz", count, seed, age=1000 - seed) for seed, count in enumerate(counts)]


def as_rows(loader: Loader, batch: Batch) -> Rows:
    return dict(zip(loader.names, batch, strict=True))


def drawn(loader: Loader, split: Split = "train") -> list[Rows]:
    """All batches until the end."""
    batches = []
    while (batch := loader.get_next_batch(split, timeout=LONG)) is not None:
        batches.append(as_rows(loader, batch))
    return batches


def some(loader: Loader, count: int, split: Split = "train") -> list[Rows]:
    """So many batches."""
    found = [loader.get_next_batch(split, timeout=LONG) for _ in range(count)]
    return [as_rows(loader, batch) for batch in found if batch is not None]


def names(rows: Rows) -> list[tuple[int, int]]:
    """(seed of the file, place in it) of each row, after checking that all the rest of it is as in that file."""
    found = list(zip(rows["game"][:, 0].tolist(), rows["ply"].tolist(), strict=True))
    for seed in {seed for seed, _ in found}:
        places = np.flatnonzero(rows["game"][:, 0] == seed)
        which = rows["ply"][places]
        for size in SIZES:  # random numbers depend on how many are drawn at once
            if size > which.max():
                original = made.rows(size, seed)
                if all(np.array_equal(rows[name][places], original[name][which]) for name in rows):
                    break
        else:
            raise AssertionError(f"rows of file {seed} are not as they were written")
    return found


SIZES = (1, 2, 3, 5, 8, 20, 40, 50, 64, 100)
"""Rows that the files of these tests have."""


def often(batches: Iterable[Rows]) -> Counter[tuple[int, int]]:
    """How often each row is in these batches."""
    return Counter(name for rows in batches for name in names(rows))


def expected(counts: Iterable[int]) -> Counter[tuple[int, int]]:
    """Every row of `files(folder, counts)` once."""
    return Counter((seed, place) for seed, count in enumerate(counts) for place in range(count))


def timeout_says(loader: Loader, *parts: str) -> None:
    """Ask for batches that do not come, until what is waited for is said to be this."""

    def said() -> bool:
        with pytest.raises(LoaderTimeout, match="train: no batch within 0.01 s: ") as caught:
            loader.get_next_batch("train", timeout=0.01)
        return all(part in str(caught.value) for part in parts)

    eventually(said)


def threads() -> list[str]:
    """Names of the loader's threads that run."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(("tengen-train", "tengen-all"))]
