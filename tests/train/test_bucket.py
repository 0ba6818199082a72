"""So many samples for each row, never more, and nothing gets lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.train.base import Bucket


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
