"""Schedules against formulas written out, and plateaus against a story."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.config.settings.train import ScheduleSettings
from tengen.errors import OptionError
from tengen.train.schedules import Plateau, factor, fall_with_run, report


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


def test_it_goes_on_from_plain_data() -> None:
    plateau = after([2.0, 2.0])
    again = Plateau.from_dict(plateau.to_dict())
    assert again == plateau
    assert report(SETTINGS, report(SETTINGS, again, 2.0), 2.0).scale == 0.5
    assert Plateau.from_dict(Plateau().to_dict()) == Plateau()
    with pytest.raises(OptionError, match=r"plateau.scale: expected a number from 0 to 1, got 2"):
        Plateau.from_dict({**plateau.to_dict(), "scale": 2})


def test_a_fall_that_ends_with_the_run() -> None:
    settings = ScheduleSettings(kind="cosine", length=None, warmup=4, lowest=0.1)
    assert [float(factor(settings)(jnp.int32(step))) for step in (0, 3, 1000)] == [0.25, 1, 1]
    found = [fall_with_run(settings, progress) for progress in (-1, 0, 0.5, 1, 2)]
    assert found == pytest.approx([1, 1, 0.55, 0.1, 0.1])
    assert fall_with_run(ScheduleSettings(kind="cosine", length=100), 0.5) == 1
    assert fall_with_run(ScheduleSettings(length=None), 0.5) == 1
