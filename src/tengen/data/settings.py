"""What the rows of a run are told."""

from collections.abc import Iterator
from dataclasses import dataclass

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
