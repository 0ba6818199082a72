"""The base class of all trainers."""

import abc
from typing import Generic, TypeVar

Config = TypeVar("Config")
Metrics = dict[str, float]


class BaseTrainer(abc.ABC, Generic[Config]):
    """Learns a number of steps at a time. A subclass implements `_train`."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @property
    @abc.abstractmethod
    def step(self) -> int:
        """Steps taken so far."""

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
