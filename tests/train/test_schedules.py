"""Schedules against formulas written out in plain Python, and plateaus against a story."""

import json
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.config.settings.train import ScheduleSettings
from tengen.errors import OptionError
from tengen.train.schedules import Plateau, Schedule, factor, fall_with_run, report


def written_out(settings: ScheduleSettings, step: int) -> float:
    rise = min((step + 1) / settings.warmup, 1) if settings.warmup else 1.0
    if settings.kind == "steps":
        return rise * settings.factor ** len([b for b in settings.boundaries if step >= b])
    if settings.kind == "cosine":
        assert settings.length is not None
        way = min(max((step - settings.warmup) / (settings.length - settings.warmup), 0), 1)
        return rise * (settings.lowest + (1 - settings.lowest) * 0.5 * (1 + math.cos(math.pi * way)))
    return rise


@pytest.mark.parametrize(
    "settings",
    [
        ScheduleSettings(kind="constant", warmup=0),
        ScheduleSettings(kind="constant", warmup=10),
        ScheduleSettings(kind="steps", warmup=5, boundaries=(10, 40), factor=0.1),
        ScheduleSettings(kind="steps", warmup=0, boundaries=()),
        ScheduleSettings(kind="cosine", warmup=7, length=60, lowest=0.05),
        ScheduleSettings(kind="plateau", warmup=3),
    ],
    ids=lambda s: f"{s.kind} after {s.warmup}",
)
def test_each_kind(settings: ScheduleSettings) -> None:
    steps = np.arange(80)
    found = jax.vmap(factor(settings))(jnp.asarray(steps))
    np.testing.assert_allclose(found, [written_out(settings, int(step)) for step in steps], rtol=1e-5)
    assert float(found[0]) > 0, "the first step learns something too"


SETTINGS = ScheduleSettings(kind="plateau", patience=3, factor=0.5, lowest=0.2, better=0.01)


def after(losses: list[float], settings: ScheduleSettings = SETTINGS) -> Plateau:
    plateau = Plateau()
    for loss in losses:
        plateau = report(settings, plateau, loss)
    return plateau


def test_it_falls_only_after_patience_and_never_below_the_lowest() -> None:
    assert after([5, 4, 3, 2, 1]).scale == 1
    assert after([2, 2, 2]).scale == 1
    assert after([2, 2, 2, 2]).scale == 0.5
    assert after([2] * 7).scale == 0.25
    assert after([2] * 100).scale == 0.2


def test_a_little_better_is_not_better() -> None:
    assert after([2.0, 1.999, 1.998, 1.997]).scale == 0.5
    assert after([2.0, 2.0, 1.0, 0.9, 0.8, 0.7]).scale == 1


def test_losses_that_are_no_numbers_and_other_schedules_change_nothing() -> None:
    plateau = after([2.0, 2.0])
    assert report(SETTINGS, plateau, math.nan) == plateau
    assert after([2.0] * 50, ScheduleSettings(kind="cosine")) == Plateau()


def test_a_fall_that_ends_with_the_run() -> None:
    settings = ScheduleSettings(kind="cosine", length=None, warmup=4, lowest=0.1)
    assert [float(factor(settings)(jnp.int32(step))) for step in (0, 3, 1000)] == [0.25, 1, 1]
    found = [fall_with_run(settings, progress) for progress in (-1, 0, 0.5, 1, 2)]
    assert found == pytest.approx([1, 1, 0.55, 0.1, 0.1])
    assert fall_with_run(ScheduleSettings(kind="cosine", length=100), 0.5) == 1
    assert fall_with_run(ScheduleSettings(length=None), 0.5) == 1


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
        ([], "schedule: expected a section with the keys settings, scale, got a list"),
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
