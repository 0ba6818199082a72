"""The base class of trainers."""

import pytest

from tengen.train.base import BaseTrainer


class Counting(BaseTrainer[dict[str, int]]):
    """Counts, and gives up at the limit of its configuration."""

    _steps = 0

    @property
    def step(self) -> int:
        return self._steps

    def _train(self, steps: int) -> dict[str, float]:
        self._steps = min(self._steps + steps, self.config["limit"])
        return {"loss": 1 / self._steps}


def test_train_reports_what_was_done() -> None:
    trainer = Counting({"limit": 5})
    assert trainer.train(2) == {"loss": 0.5, "step": 2, "steps": 2}
    assert trainer.train(0) == {"step": 2, "steps": 0}
    assert trainer.train(10) == {"loss": 0.2, "step": 5, "steps": 3}


def test_steps_back_are_refused() -> None:
    with pytest.raises(ValueError, match="steps that is not negative, got -1"):
        Counting({"limit": 5}).train(-1)


def test_a_subclass_must_say_how() -> None:
    with pytest.raises(TypeError, match="abstract"):
        BaseTrainer({})  # pyright: ignore[reportAbstractUsage]
