"""Numbers that cannot be true are named."""

from typing import Any

import numpy as np
import pytest

from tengen.data.format import sanity
from tengen.data.format.rows import UNKNOWN
from tests.helpers import rows as made


def found(**changes: Any) -> list[str]:
    """The problems of eight rows, of which row 3 is changed."""
    rows = made.rows(8)
    for name, value in changes.items():
        rows[name] = rows[name].copy()
        rows[name][3] = value
    return list(sanity.problems(made.FORM, rows))


def test_good_rows() -> None:
    assert found() == []
    assert list(sanity.problems(made.PLAIN, made.rows(0, form=made.PLAIN))) == []
    assert list(sanity.problems(made.PLAIN, made.rows(9, form=made.PLAIN))) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("scalars", value) for value in (np.nan, np.inf, -1e38)),
        *(("score", value) for value in (np.inf, 1e38)),
        ("weight", 1e38),
        *((name, value) for name in ("weight", "opponent_weight") for value in (np.nan, np.inf, -1)),
        *(("outcome", value) for value in ([0.5, 0.5, 0.5], [2, -1, 0], np.nan, 0)),
        *(("search_value", value) for value in (np.nan, 1.1, -1.1, np.inf)),
        *(("to_play", value) for value in (2, -1)),
        ("ply", -1),
        ("moves_left", -1),
        *(("ownership", value) for value in (2, -127)),
        *(("opponent_policy", value) for value in (np.nan, 0.2, 0, [1.5, -0.5] + [0] * 8)),
        ("planes", 255),
    ],
)
def test_each_is_named(name: str, value: Any) -> None:
    (message,) = found(**{name: value})
    assert message.startswith(f"{name}: expected ")


def test_policies() -> None:
    even = np.full(10, 0.1)
    assert found(policy_weight=1, policy=even) == []
    assert found(policy_weight=0, policy=0) == []
    assert found(policy_weight=0, policy=even) == []
    assert "1 of 8 rows" in found(policy_weight=1, policy=0)[0]
    assert found(policy_weight=0, policy=np.nan)
    assert found(policy_weight=0.5, policy=even * 1.1)


def test_many_moves_in_half_precision_still_add_up() -> None:
    form = made.RowFormat((1, 1, 8), 0, 4672)
    assert list(sanity.problems(form, made.rows(50, form=form))) == []


def test_unknown_targets_are_possible() -> None:
    assert found(score=np.nan, ownership=UNKNOWN) == []
