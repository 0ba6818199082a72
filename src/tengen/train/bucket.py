"""How much may be learned: so many samples for each new row, never more."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from tengen import schema
from tengen.errors import OptionError
from tengen.schema import setting


@dataclass(frozen=True)
class Bucket:
    """Rows pour samples in, steps take them out a batch at a time, and what is left stays."""

    level: float = setting(0.0, "samples that may be learned from now", low=0)
    rows: int = setting(0, "rows that have come in", low=0)
    samples: int = setting(0, "samples that have been learned", low=0)

    def filled(self, rows: int, samples_per_row: float, largest: float) -> "Bucket":
        """After so many new rows; what would not fit under `largest` is lost."""
        if rows < 0:
            raise ValueError(f"expected no negative number of rows, got {rows}")
        # A level above `largest`, from before that setting was lowered, is not taken away.
        level = min(self.level + rows * samples_per_row, max(largest, self.level))
        return replace(self, level=level, rows=self.rows + rows)

    def steps(self, batch: int) -> int:
        """How many steps of so many samples it is good for."""
        return int(self.level // batch)

    def spent(self, steps: int, batch: int) -> "Bucket":
        """After so many steps. ValueError if it is not good for them."""
        if steps > self.steps(batch):
            raise ValueError(f"expected at most {self.steps(batch)} steps of {batch} samples, got {steps}")
        samples = steps * batch
        return replace(self, level=self.level - samples, samples=self.samples + samples)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for a checkpoint."""
        return asdict(self)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> "Bucket":
        """Undo `to_dict`; OptionError if it is something else."""
        found, problems = schema.check(Bucket, data)
        if found is None:
            raise OptionError("; ".join(f"bucket.{schema.dotted(path)}: {text}" for path, text in problems))
        return found
