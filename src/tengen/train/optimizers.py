"""Optimisers: from gradients to changes of the parameters, {name: array}, with names as in `nets.saving`."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import optax
from jax import Array

from tengen.config.settings.train import OptimizerSettings
from tengen.train.muon import muon
from tengen.train.packing import Packing, is_kernel

Parameters = dict[str, Array]
Optimizer = optax.GradientTransformation

_NUMBERS = ("learning_rate", "momentum", "square_momentum", "weight_decay")


def make(settings: OptimizerSettings, packing: Packing | None = None) -> Optimizer:
    """An optimiser whose changes are for a learning rate of 1; with `packing`, of packed parameters.

    All of them are proportional to the learning rate, decay included, so the learner multiplies them by the rate of the
    step, and the optimiser's state knows nothing about schedules.
    """
    clip = optax.identity() if settings.clip is None else optax.clip_by_global_norm(settings.clip)
    return optax.chain(clip, _unclipped(settings, packing))


def start(settings: OptimizerSettings, parameters: Mapping[str, Any]) -> Any:
    """The optimiser's first state, on the host. All of them begin with zeros, so that nothing need be compiled."""
    shapes = jax.eval_shape(make(settings).init, parameters)
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)


def numbers(settings: OptimizerSettings) -> dict[str, float]:
    """The numbers of an optimiser, which may be arrays when it is made inside a compiled function."""
    found = {name: getattr(settings, name) for name in _NUMBERS}
    return {**found, "clip": math.inf if settings.clip is None else settings.clip}


def with_numbers(settings: OptimizerSettings, numbers: Mapping[str, Any]) -> OptimizerSettings:
    """The settings with these `numbers`; others in there are ignored."""
    return replace(settings, **{name: numbers[name] for name in (*_NUMBERS, "clip")})


def step(
    optimizer: Optimizer, gradient: Any, state: Any, parameters: Parameters, rate: Array
) -> tuple[Parameters, Any]:
    """The parameters after one step at this learning rate, and the optimiser's state."""
    changes, state = optimizer.update(gradient, state, parameters)
    return optax.apply_updates(parameters, jax.tree.map(lambda x: x * rate, changes)), state  # type: ignore[return-value]


def decayed(parameters: Parameters) -> dict[str, bool]:
    """Which parameters weight decay applies to: kernels, not scales, shifts and biases."""
    return {name: is_kernel(name, parameter) for name, parameter in parameters.items()}


def _unclipped(settings: OptimizerSettings, packing: Packing | None) -> Optimizer:
    decay = settings.weight_decay
    if settings.kind == "sgd":
        descent = optax.sgd(1.0, momentum=settings.momentum, nesterov=True)
        return optax.chain(optax.add_decayed_weights(decay, decayed), descent)
    if settings.kind == "adamw":
        return optax.adamw(1.0, settings.momentum, settings.square_momentum, weight_decay=decay, mask=decayed)
    return muon(settings.momentum, settings.square_momentum, decay, packing)
