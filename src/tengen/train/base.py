"""What trainers share: their base class, and how much they may learn."""

import abc
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from tengen.schema import setting
from tengen.train.checkpoints import Checkpoint, Checkpoints

Config = TypeVar("Config")
Metrics = dict[str, float]


class BaseTrainer(abc.ABC, Generic[Config]):
    """Learns a number of steps at a time. A subclass implements `_train`."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._step = 0

    @property
    def step(self) -> int:
        """Steps taken so far."""
        return self._step

    def train(self, steps: int) -> Metrics:
        """Take `steps` steps, or fewer if there is nothing to learn from; returns figures by name."""
        if steps < 0:
            raise ValueError(f"expected a number of steps that is not negative, got {steps}")
        before = self.step
        found = self._train(steps) if steps else {}
        return {**found, "step": self.step, "steps": self.step - before}

    @abc.abstractmethod
    def _train(self, steps: int) -> Metrics:
        """`train`, for at least one step."""

    def checkpoint(self, extras: dict[str, Any] | None = None) -> Checkpoint:
        """Everything that is needed to resume training; `extras` is JSON data of the caller."""
        raise NotImplementedError

    def resume(self, checkpoints: Checkpoints) -> tuple[dict[str, Any], tuple[str, ...]] | None:
        """Resume from the newest good checkpoint; returns its extras, and what was set aside. None if there is none."""
        raise NotImplementedError


@dataclass(frozen=True)
class Bucket:
    """How much may be learned: rows add samples, steps take them out a batch at a time, and what is left stays."""

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
