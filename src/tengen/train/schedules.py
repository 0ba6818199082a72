"""By what the learning rate is multiplied: a function of the step, and for plateaus a small state fed with losses."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax.numpy as jnp
from jax import Array

from tengen import schema
from tengen.config.settings.train import ScheduleSettings
from tengen.errors import OptionError
from tengen.schema import setting

# How much of a plateau's smoothed loss a new report replaces: single reports are too noisy to compare.
_NEW_SHARE = 0.2


def factor(settings: ScheduleSettings) -> Callable[[Array], Array]:
    """A pure function: Int32[] step, the first being 0, to Float32[] factor.

    What does not follow from the step is not in it: the plateau's fall, and a fall that ends with the run.
    """

    def at(step: Array) -> Array:
        now = jnp.asarray(step, jnp.float32)
        rise = jnp.minimum((now + 1) / max(settings.warmup, 1), 1) if settings.warmup else jnp.float32(1)
        return rise * _fall(settings, now)

    return at


def _fall(settings: ScheduleSettings, step: Array) -> Array:
    if settings.kind == "steps":
        passed = jnp.sum(step >= jnp.asarray(settings.boundaries, jnp.float32)) if settings.boundaries else 0
        return jnp.float32(settings.factor) ** passed
    if settings.kind == "cosine" and settings.length is not None:
        return _cosine(settings, (step - settings.warmup) / (settings.length - settings.warmup))
    return jnp.float32(1)


def fall_with_run(settings: ScheduleSettings, progress: float) -> float:
    """The factor of a schedule that ends with the run, of whose goal a share of `progress` is reached; else 1."""
    if settings.kind != "cosine" or settings.length is not None:
        return 1.0
    return float(_cosine(settings, progress))


def _cosine(settings: ScheduleSettings, way: Array | float) -> Array:
    """From 1 to the lowest as `way` goes from 0 to 1."""
    return settings.lowest + (1 - settings.lowest) * (1 + jnp.cos(math.pi * jnp.clip(way, 0, 1))) / 2


@dataclass(frozen=True)
class Plateau:
    """Where a plateau schedule stands. `scale` is what it has come down to."""

    scale: float = setting(1.0, "by what the learning rate is multiplied", low=0, high=1)
    smooth: float | None = setting(None, "the loss, smoothed")
    best: float | None = setting(None, "the lowest that it has been since the last fall")
    waited: int = setting(0, "reports since then", low=0)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for a checkpoint."""
        return asdict(self)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> "Plateau":
        """Undo `to_dict`; OptionError if it is something else."""
        found, problems = schema.check(Plateau, data)
        if found is None:
            raise OptionError("; ".join(f"plateau.{schema.dotted(path)}: {text}" for path, text in problems))
        return found


def report(settings: ScheduleSettings, plateau: Plateau, loss: float) -> Plateau:
    """After one more report of the loss. Nothing changes under other schedules, or by a loss that is no number."""
    if settings.kind != "plateau" or not math.isfinite(loss):
        return plateau
    smooth = loss if plateau.smooth is None else plateau.smooth + _NEW_SHARE * (loss - plateau.smooth)
    if plateau.best is None or smooth < plateau.best - settings.better * abs(plateau.best):
        return replace(plateau, smooth=smooth, best=smooth, waited=0)
    if plateau.waited + 1 < settings.patience:
        return replace(plateau, smooth=smooth, waited=plateau.waited + 1)
    scale = max(plateau.scale * settings.factor, min(settings.lowest, plateau.scale))
    return Plateau(scale=scale, smooth=smooth, best=smooth, waited=0)
