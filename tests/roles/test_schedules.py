"""Numbers that follow from the step, against their formulas in plain Python."""

import json
import math
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from tengen.errors import OptionError
from tengen.roles.schedules import Schedule

_CASES: list[tuple[dict[str, Any], Any]] = [
    ({"kind": "constant", "initial": 0.3}, lambda t: 0.3),
    (
        {"kind": "linear", "initial": 1.0, "final": 0.1, "length": 10},
        lambda t: 1.0 - 0.9 * t / 10 if t < 10 else 0.1,
    ),
    ({"kind": "exponential", "initial": 2.0, "final": 0.5, "rate": 0.9}, lambda t: 2.0 * 0.9**t + 0.5 * (1 - 0.9**t)),
    ({"kind": "inverse", "initial": 1.0, "final": 0.0, "length": 5}, lambda t: 1 / (1 + t / 5)),
    (
        {"kind": "cosine", "initial": 3.0, "final": 1.0, "length": 8},
        lambda t: 2 + math.cos(math.pi * min(t, 8) / 8),
    ),
    (
        {"kind": "steps", "initial": 1.0, "final": 0.0, "rate": 0.5, "boundaries": (3, 7)},
        lambda t: 0.5 ** ((t >= 3) + (t >= 7)),
    ),
]


@pytest.mark.parametrize(("settings", "formula"), _CASES, ids=[case[0]["kind"] for case in _CASES])
def test_the_formula(settings: dict[str, Any], formula: Any) -> None:
    schedule = Schedule.of(**settings)
    found = jax.vmap(schedule)(jnp.arange(12))
    assert found.dtype == jnp.float32
    assert found.tolist() == pytest.approx([formula(t) for t in range(12)], rel=1e-5)
    assert float(schedule(5)) == pytest.approx(formula(5), rel=1e-5)


def test_a_rate_close_to_one_after_many_steps() -> None:
    schedule = Schedule.of(kind="exponential", initial=1.0, rate=0.99999)
    assert float(schedule(1_000_000)) == pytest.approx(0.99999**1_000_000, rel=1e-4)
    at_once = Schedule.of(kind="exponential", initial=1.0, final=0.25, rate=0.0)
    assert [float(at_once(t)) for t in (0, 1, 9)] == [1.0, 0.25, 0.25]


def test_it_is_saved_as_plain_data() -> None:
    schedule = Schedule.of(kind="steps", initial=1.0, rate=0.5, boundaries=(3, 7))
    again = Schedule.from_dict(json.loads(json.dumps(schedule.to_dict())))
    assert again == schedule
    assert hash(again) == hash(schedule)


def test_a_scale_multiplies_all_of_it() -> None:
    schedule = Schedule(Schedule.of(kind="linear", initial=1.0, final=0.5, length=10).settings, 0.01)
    assert [float(schedule(t)) for t in (0, 5, 20)] == pytest.approx([0.01, 0.0075, 0.005])
    assert float(Schedule.constant(3)(100)) == 3


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "expected a mapping"),
        ({"scale": 1.0}, "expected a section with the keys kind"),
        ({"settings": {"kind": "odd", "initial": 1.0}, "scale": 1.0}, "kind: expected one of constant"),
        ({"settings": Schedule.constant(1).to_dict()["settings"], "scale": None}, "scale: expected a number"),
    ],
)
def test_what_is_no_schedule(data: Any, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Schedule.from_dict(data)


def test_boundaries_must_rise() -> None:
    with pytest.raises(OptionError, match="expected rising steps, got 7, 3"):
        Schedule.of(kind="steps", initial=1.0, rate=0.5, boundaries=(7, 3))
