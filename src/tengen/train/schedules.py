"""Numbers that change with the step: learning rates, exploration, and anything else that a trainer needs.

    epsilon = Schedule.of(kind="linear", initial=1.0, final=0.05, length=10_000)
    epsilon(2500)                        # 0.7625; a step may be a traced Int32[] as well
    Schedule.from_dict(epsilon.to_dict()) == epsilon

With t the step, and `left` the share of the way from `initial` to `final` that is left (1 at first):

    constant     initial, for ever
    linear       left = 1 - t / length, until it is 0
    cosine       left = (1 + cos(pi t / length)) / 2, until t = length
    exponential  left = rate ** t
    inverse      left = length / (length + t)
    steps        left = rate ** (number of boundaries that t has reached)

AlphaZero's learning rate also warms up, may fall with the progress of the run, and may wait for plateaus of the loss.

Trainers also accept the user's own schedules: any callable from the step to a number (docs/trainers.md).
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen import importing, schema
from tengen.config.settings.roles import NumberSettings
from tengen.config.settings.train import ScheduleSettings
from tengen.errors import OptionError, TengenError
from tengen.schema import setting

AnySchedule = Callable[[Any], Any]
"""From the step, the first being 0, to a number."""

# How much of a plateau's smoothed loss a new report replaces: single reports are too noisy to compare.
_NEW_SHARE = 0.2


@dataclass(frozen=True)
class Schedule:
    """A pure function of the step, times `scale`. Equal settings make equal schedules, which share programs."""

    settings: NumberSettings
    scale: float = 1.0

    @staticmethod
    def of(
        kind: str,
        initial: float,
        final: float = 0.0,
        length: int = 1,
        rate: float = 1.0,
        boundaries: tuple[int, ...] = (),
    ) -> "Schedule":
        """From keywords, leaving out what the kind does not use. OptionError says what is wrong."""
        return Schedule.from_dict({"settings": locals(), "scale": 1.0})

    @staticmethod
    def constant(number: float) -> "Schedule":
        return Schedule.of(kind="constant", initial=float(number))

    def __call__(self, step: Array | float) -> Array:
        """Float32[]: the number at this step; on the host if the step is, where nothing need be compiled."""
        xp: Any = jnp if isinstance(step, Array) else np
        settings, now = self.settings, xp.asarray(step, xp.float32)
        initial, final = self.scale * settings.initial, self.scale * settings.final
        if settings.kind == "constant":
            return xp.float32(initial)
        left = self._left(now, xp)
        return (left * initial + (1 - left) * final).astype(jnp.float32)

    def _left(self, now: Any, xp: Any) -> Any:
        settings = self.settings
        if settings.kind == "linear":
            return xp.clip(1 - now / settings.length, 0, 1)
        if settings.kind == "cosine":
            return (1 + xp.cos(math.pi * xp.clip(now / settings.length, 0, 1))) / 2
        if settings.kind == "exponential":
            # A rate such as 0.99999 rounded to 32 bits would be wrong by percents after a million steps; its logarithm
            # keeps all digits.
            return xp.exp(now * math.log(settings.rate)) if settings.rate > 0 else (now == 0).astype(xp.float32)
        if settings.kind == "inverse":
            return settings.length / (settings.length + now)
        passed = xp.sum(now >= xp.asarray(settings.boundaries, xp.float32)) if settings.boundaries else 0
        return xp.float32(settings.rate) ** passed

    def to_dict(self) -> dict[str, Any]:
        return {"settings": asdict(self.settings), "scale": self.scale}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> "Schedule":
        """Undo `to_dict`; OptionError says what is wrong with something else."""
        return schema.from_data(Schedule, data, "schedule", strict=True)


def number(schedule: AnySchedule, step: int, what: str, *, share: bool = False) -> Array:
    """Float32[]: the number at this step, from 0 to 1 if it is a `share`. `what` names a user's own in errors."""
    if isinstance(schedule, Schedule):
        return schedule(step)
    if not callable(schedule):
        raise OptionError(f"{what}: expected a function of the step, got {schema.quote(schedule)}")
    with importing.told(what, schedule):
        found = schedule(step)
    try:
        value = float(found)
    except (TypeError, ValueError):
        value = math.nan
    if not (0 <= value <= 1 if share else math.isfinite(value)):
        wanted, defined = "number from 0 to 1" if share else "finite number", importing.where(schedule)
        raise OptionError(f"{what}: expected a {wanted} at step {step}, got {schema.quote(found)} ({defined})")
    return jnp.float32(value)


def saved(schedule: Any, what: str) -> dict[str, Any] | None:
    """What checkpoints keep of a schedule, as JSON data; None for a function without state."""
    if isinstance(schedule, Schedule):
        return {"schedule": schedule.to_dict()}
    if not has_state(schedule):
        return None
    with importing.told(what):
        state = schedule.state_dict()
    try:
        return {"state": json.loads(json.dumps(state, default=_number_or_list, allow_nan=False))}
    except (TypeError, ValueError) as error:
        wanted = f"expected finite numbers, texts, lists and dictionaries: {error} ({importing.where(schedule)})"
        raise OptionError(f"{what}: state_dict: {wanted}") from None


def has_state(schedule: Any) -> bool:
    """Whether it has a state that checkpoints keep."""
    methods = (getattr(schedule, name, None) for name in ("state_dict", "load_state_dict"))
    return not isinstance(schedule, type) and all(map(callable, methods))


def restored(kept: Mapping[str, Any], schedule: Any, what: str, own: bool) -> Any:
    """The schedule with the state that `saved` kept. A `Schedule` comes from the checkpoint, unless it is `own`."""
    if "schedule" in kept:
        return schedule if own else Schedule.from_dict(kept["schedule"])
    if not has_state(schedule):
        raise TengenError(f"{what}: the checkpoint has its state, so the program must set it before it loads that")
    with importing.told(what):
        schedule.load_state_dict(kept["state"])
    return schedule


def _number_or_list(value: Any) -> Any:
    """Arrays of NumPy and JAX for JSON."""
    if isinstance(value, Array | np.ndarray | np.generic):
        return np.asarray(value).tolist()
    raise TypeError(f"got {type(value).__name__}")


def factor(settings: ScheduleSettings) -> Callable[[Array], Array]:
    """What AlphaZero's learning rate is multiplied by: a function of Int32[] step, the first being 0, to Float32[].

    The fall at plateaus, and a fall that ends with the run, do not depend on the step alone and are not included.
    """
    fall = Schedule.constant(1)
    if settings.kind == "steps":
        fall = Schedule.of("steps", 1.0, rate=settings.factor, boundaries=settings.boundaries)
    elif settings.kind == "cosine" and settings.length is not None:
        fall = _cosine(settings, settings.length - settings.warmup)

    def at(step: Array) -> Array:
        if not settings.warmup:
            return fall(step)
        start = settings.warmup if settings.kind == "cosine" else 0
        return jnp.minimum((step + 1) / settings.warmup, 1) * fall(step - start)

    return at


def fall_with_run(settings: ScheduleSettings, progress: float) -> float:
    """The factor of a schedule that ends with the run, `progress` being the share of its goal reached; otherwise 1."""
    if settings.kind != "cosine" or settings.length is not None:
        return 1.0
    return float(_cosine(settings, 1)(progress))


def _cosine(settings: ScheduleSettings, length: int) -> Schedule:
    return Schedule.of("cosine", 1.0, settings.lowest, length)


@dataclass(frozen=True)
class Plateau:
    scale: float = setting(1.0, "what the learning rate is multiplied by", low=0, high=1)
    smooth: float | None = setting(None, "the smoothed loss")
    best: float | None = setting(None, "the lowest that it has been since the last fall")
    waited: int = setting(0, "reports since then", low=0)


def report(settings: ScheduleSettings, plateau: Plateau, loss: float) -> Plateau:
    """The state after one more report of the loss. Other schedules, and a loss that is not finite, change nothing."""
    if settings.kind != "plateau" or not math.isfinite(loss):
        return plateau
    smooth = loss if plateau.smooth is None else plateau.smooth + _NEW_SHARE * (loss - plateau.smooth)
    if plateau.best is None or smooth < plateau.best - settings.better * abs(plateau.best):
        return replace(plateau, smooth=smooth, best=smooth, waited=0)
    if plateau.waited + 1 < settings.patience:
        return replace(plateau, smooth=smooth, waited=plateau.waited + 1)
    scale = max(plateau.scale * settings.factor, min(settings.lowest, plateau.scale))
    return Plateau(scale=scale, smooth=smooth, best=smooth, waited=0)
