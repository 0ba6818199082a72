"""Any number of a trainer as a function of the step.

    epsilon = Schedule.of(kind="linear", initial=1.0, final=0.05, length=10_000)
    epsilon(2500)                        # 0.7625; a step may be a traced Int32[] as well
    Schedule.from_dict(epsilon.to_dict()) == epsilon

With t the step and `way` what is left of the way from `initial` to `final` (1 at first):

    constant     initial, for ever
    linear       way = 1 - t / length, until it is 0
    cosine       way = (1 + cos(pi t / length)) / 2, until t = length
    exponential  way = rate ** t
    inverse      way = length / (length + t)
    steps        way = rate ** (number of boundaries that t has reached)
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array

from tengen import schema
from tengen.config.settings.roles import NumberSettings
from tengen.errors import OptionError

_UNUSED = {"final": 0.0, "length": 1, "rate": 1.0, "boundaries": ()}


@dataclass(frozen=True)
class Schedule:
    """A pure function of the step, times `scale`. Equal settings make equal schedules, which share programs."""

    settings: NumberSettings
    scale: float = 1.0

    @staticmethod
    def of(**settings: Any) -> "Schedule":
        """From keywords, leaving out what the kind does not use. OptionError says what is wrong."""
        return Schedule.from_dict({"settings": {**_UNUSED, **settings}, "scale": 1.0})

    @staticmethod
    def constant(number: float) -> "Schedule":
        """Always this number."""
        return Schedule.of(kind="constant", initial=float(number))

    def __call__(self, step: Array | int) -> Array:
        """Float32[]: the number at this step."""
        settings, now = self.settings, jnp.asarray(step, jnp.float32)
        initial, final = self.scale * settings.initial, self.scale * settings.final
        if settings.kind == "constant":
            return jnp.float32(initial)
        way = self._way(now)
        return (way * initial + (1 - way) * final).astype(jnp.float32)

    def _way(self, now: Array) -> Array:
        """What is left of it."""
        settings = self.settings
        if settings.kind == "linear":
            return jnp.clip(1 - now / settings.length, 0, 1)
        if settings.kind == "cosine":
            return (1 + jnp.cos(math.pi * jnp.clip(now / settings.length, 0, 1))) / 2
        if settings.kind == "exponential":
            # A rate such as 0.99999 rounded to 32 bits would be wrong by percents after a million steps; its logarithm
            # keeps all digits.
            return jnp.exp(now * math.log(settings.rate)) if settings.rate > 0 else (now == 0).astype(jnp.float32)
        if settings.kind == "inverse":
            return settings.length / (settings.length + now)
        passed = jnp.sum(now >= jnp.asarray(settings.boundaries, jnp.float32)) if settings.boundaries else 0
        return jnp.float32(settings.rate) ** passed

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"settings": asdict(self.settings), "scale": self.scale}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> "Schedule":
        """Undo `to_dict`; OptionError says what is wrong with something else."""
        if not isinstance(data, Mapping):
            raise OptionError(f"schedule: expected a mapping, got {schema.quote(data)}")
        settings, problems = schema.check(NumberSettings, data.get("settings"))
        scale = data.get("scale")
        if settings is None:
            raise OptionError("; ".join(f"schedule.{schema.dotted(path)}: {text}" for path, text in problems))
        if not isinstance(scale, int | float) or not math.isfinite(scale):
            raise OptionError(f"schedule.scale: expected a number, got {schema.quote(scale)}")
        return Schedule(settings, float(scale))
