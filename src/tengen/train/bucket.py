"""How much may be learned: a fixed number of samples for each new row, and never more."""

from dataclasses import dataclass, replace

from tengen.schema import setting


@dataclass(frozen=True)
class Bucket:
    """Rows add samples, steps take them out a batch at a time, and what is left stays."""

    level: float = setting(0.0, "samples that may be learned from now", low=0)
    rows: int = setting(0, "rows that have come in", low=0)
    samples: int = setting(0, "samples that have been learned", low=0)

    def filled(self, rows: int, samples_per_row: float, largest: float) -> "Bucket":
        """After `rows` new rows; what would not fit under `largest` is lost."""
        if rows < 0:
            raise ValueError(f"expected a number of rows that is not negative, got {rows}")
        # If the setting was lowered, a level above `largest` is kept.
        level = min(self.level + rows * samples_per_row, max(largest, self.level))
        return replace(self, level=level, rows=self.rows + rows)

    def steps(self, batch: int) -> int:
        """How many steps of `batch` samples it allows."""
        return int(self.level // batch)

    def spent(self, steps: int, batch: int) -> "Bucket":
        """After `steps` steps. ValueError if it does not allow them."""
        if steps > self.steps(batch):
            raise ValueError(f"expected at most {self.steps(batch)} steps of {batch} samples, got {steps}")
        samples = steps * batch
        return replace(self, level=self.level - samples, samples=self.samples + samples)
