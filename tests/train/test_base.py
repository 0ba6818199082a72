"""What trainers share: the base class, and how much may be learned."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.train.base import BaseTrainer, Bucket


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


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 20)), max_size=40),
    st.sampled_from([0.01, 0.5, 1.0, 3.7, 8.0]),
    st.sampled_from([1, 64, 1000]),
)
def test_never_more_than_the_rows_allow(work: list[tuple[int, int]], samples_per_row: float, batch: int) -> None:
    bucket, rows = Bucket(), 0
    for new, wanted in work:
        bucket, rows = bucket.filled(new, samples_per_row, 1e12), rows + new
        bucket = bucket.spent(min(wanted, bucket.steps(batch)), batch)
        assert bucket.rows == rows
        assert bucket.samples <= rows * samples_per_row * (1 + 1e-12)
        assert bucket.samples + bucket.level == pytest.approx(rows * samples_per_row), "what is left is carried over"
    bucket = bucket.spent(bucket.steps(batch), batch)
    assert bucket.level < batch


def test_small_shares_add_up() -> None:
    bucket = Bucket()
    for _ in range(10):
        bucket = bucket.filled(3, 0.5, 1e12)
    assert bucket.steps(4) == 3
    assert bucket.spent(3, 4) == Bucket(level=3.0, rows=30, samples=12)


def test_what_is_not_there_cannot_be_spent() -> None:
    with pytest.raises(ValueError, match="expected at most 2 steps of 4 samples, got 3"):
        Bucket().filled(10, 1.0, 1e12).spent(3, 4)
    with pytest.raises(ValueError, match="rows that is not negative"):
        Bucket().filled(-1, 1.0, 1e12)


def test_beyond_the_largest_debt_rows_earn_nothing() -> None:
    bucket = Bucket().filled(100, 2.0, 150)
    assert (bucket.level, bucket.rows) == (150, 100)
    assert bucket.filled(10, 2.0, 100).level == 150, "a lower limit takes nothing away"
