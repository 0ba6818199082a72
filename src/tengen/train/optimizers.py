"""Optimisers: from gradients to changes of the parameters, {name: array}, with names as in `nets.saving`."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array
from optax import contrib

from tengen.config.settings.train import OptimizerSettings

Parameters = dict[str, Array]
Optimizer = optax.GradientTransformation

# Muon's steps are scaled to the size of AdamW's, so that the same learning rate suits both.
_MUON_SIZE = 0.2
_NUMBERS = ("learning_rate", "momentum", "square_momentum", "weight_decay")


def make(settings: OptimizerSettings) -> Optimizer:
    """An optimiser whose changes are for a learning rate of 1.

    All of them are proportional to the learning rate, decay included, so the learner multiplies them by the rate of the
    step, and the optimiser's state knows nothing about schedules.
    """
    clip = optax.identity() if settings.clip is None else optax.clip_by_global_norm(settings.clip)
    return optax.chain(clip, _unclipped(settings))


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


def is_decayed(name: str, parameter: Any) -> bool:
    """Whether weight decay applies to this parameter: to kernels, not to scales, shifts and biases."""
    return name.rsplit(".", 1)[-1] == "kernel" and parameter.ndim > 1


def decayed(parameters: Parameters) -> dict[str, bool]:
    return {name: is_decayed(name, parameter) for name, parameter in parameters.items()}


def _unclipped(settings: OptimizerSettings) -> Optimizer:
    decay = settings.weight_decay
    if settings.kind == "sgd":
        descent = optax.sgd(1.0, momentum=settings.momentum, nesterov=True)
        return optax.chain(optax.add_decayed_weights(decay, decayed), descent)
    if settings.kind == "adamw":
        return optax.adamw(1.0, settings.momentum, settings.square_momentum, weight_decay=decay, mask=decayed)
    return _stacking_kernels(
        contrib.muon(
            1.0,
            beta=settings.momentum,
            weight_decay=decay,
            adam_b1=settings.momentum,
            adam_b2=settings.square_momentum,
            muon_weight_dimension_numbers=_as_matrices,
            consistent_rms=_MUON_SIZE,
        )
    )


def _stacking_kernels(optimizer: Optimizer) -> Optimizer:
    """The same optimiser on kernels that are stacked by their shape, [number, ...]; it must treat each by itself.

    Muon multiplies many small matrices for every kernel, which is faster for all kernels of a tower at once.
    """

    def init(params: Any) -> Any:
        return optimizer.init(_stacked(params))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        changes, state = optimizer.update(_stacked(updates), state, _stacked(params))
        return _unstacked(changes, params), state  # type: ignore[arg-type]

    return optax.GradientTransformation(init, update)


def _shapes(parameters: Parameters) -> dict[str, list[str]]:
    """The names of the kernels, by a name for their shape."""
    found: dict[str, list[str]] = {}
    for name in sorted(parameters):
        if is_decayed(name, parameters[name]):
            found.setdefault(f"{'x'.join(map(str, parameters[name].shape))}.kernel", []).append(name)
    return found


def _stacked(parameters: Parameters) -> Parameters:
    stacks = {shape: jnp.stack([parameters[name] for name in names]) for shape, names in _shapes(parameters).items()}
    return stacks | {name: each for name, each in parameters.items() if not is_decayed(name, each)}


def _unstacked(stacks: Parameters, parameters: Parameters) -> Parameters:
    """The arrays by the names of the parameters again, in their order."""
    shapes = _shapes(parameters)
    kernels = {name: stacks[shape][i] for shape, names in shapes.items() for i, name in enumerate(names)}
    return {name: kernels[name] if name in kernels else stacks[name] for name in parameters}


def _as_matrices(stacks: Any) -> Any:
    """How Muon sees each stacked kernel as a matrix from all inputs to the outputs; None for other parameters."""
    return {
        name: contrib.MuonDimensionNumbers(tuple(range(1, stack.ndim - 1)), stack.ndim - 1)
        if is_decayed(name, stack)
        else None
        for name, stack in stacks.items()
    }
