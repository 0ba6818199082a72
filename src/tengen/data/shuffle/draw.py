"""Which rows are drawn, and into which files they go. Counts only: no row is looked at here.

Every order of the drawn rows over the files is equally likely. Rows are read in *runs*, as many at a time as fit into
the memory. How many rows of a run go to each file is drawn first, from what there is still room for; which of them is
left to a permutation of the run, and where they stand in the file to one of the file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tengen.data.shuffle.plan import SIDES, ShufflePlan, ShuffleSource

_MOST = 10**9  # NumPy draws without replacement from fewer


class FilePart(NamedTuple):
    """What is drawn of one chunk."""

    source: ShuffleSource
    rows: int


@dataclass(frozen=True)
class RowRun:
    """Rows that are in memory together."""

    number: int
    side: str
    parts: tuple[FilePart, ...]
    counts: np.ndarray  # Int32[F]: rows for each file of its side

    @property
    def rows(self) -> int:
        """Rows drawn."""
        return sum(part.rows for part in self.parts)


def draw(plan: ShufflePlan, random: np.random.Generator) -> tuple[RowRun, ...]:
    """All runs of a shuffle."""
    counts = shares([source.rows for source in plan.sources], plan.rows, random)
    runs: list[RowRun] = []
    for side in SIDES:
        both = zip(plan.sources, counts.tolist(), strict=True)
        parts = [FilePart(source, rows) for source, rows in both if rows and plan.side(source) == side]
        room = np.array(_file_sizes(sum(part.rows for part in parts), plan.settings.rows_per_file), np.int64)
        for group in _groups(parts, plan.memory.run_rows):
            files = shares(room, sum(part.rows for part in group), random)
            room -= files
            runs.append(RowRun(len(runs), side, tuple(group), files.astype(np.int32)))
    return tuple(runs)


def shares(sizes: Sequence[int] | np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Int64[...]: how many of `count` different things, drawn evenly from boxes of these sizes, are from each box."""
    total = int(np.sum(sizes, dtype=np.int64))
    if total < _MOST:
        return random.multivariate_hypergeometric(sizes, count, method="marginals").astype(np.int64)
    if len(sizes) == 1:
        return np.array([count], np.int64)
    # So many that chance makes no difference: each half gives as many as is its due.
    half = len(sizes) // 2
    due = round(count * int(np.sum(sizes[:half], dtype=np.int64)) / total)
    return np.concatenate([shares(sizes[:half], due, random), shares(sizes[half:], count - due, random)])


def _file_sizes(rows: int, most: int) -> list[int]:
    return [most] * (rows // most) + ([rows % most] if rows % most else [])


def _groups(parts: list[FilePart], most: int) -> Iterator[list[FilePart]]:
    """Neighbours together, as long as they have at most so many rows."""
    group: list[FilePart] = []
    rows = 0
    for part in parts:
        if group and rows + part.rows > most:
            yield group
            group, rows = [], 0
        group.append(part)
        rows += part.rows
    if group:
        yield group
