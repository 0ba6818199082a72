"""Optimisers: from gradients to changes of the parameters, {name: array}, with names as in `nets.saving`."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax

from tengen.config.settings.train import OptimizerSettings
from tengen.train.packing import Packing, Tensors, is_kernel

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


_COEFFICIENTS = 3.4445, -4.7750, 2.0315
_ITERATIONS = 5
_EPSILON = 1e-8
_SIZE = 0.2  # steps have the size of AdamW's, so that the same learning rate suits both


class MuonState(NamedTuple):
    number: Array  # Int32[]: updates so far
    first: Tensors  # moving averages of the gradients
    second: Tensors  # of their squares, for everything but kernels


def muon(
    momentum: Any, square_momentum: Any, weight_decay: Any, packing: Packing | None = None
) -> optax.GradientTransformation:
    """Muon for kernels and AdamW for everything else, both with Nesterov's momentum, for a learning rate of 1.

    The update of a kernel is made orthogonal, as a matrix between all inputs and the outputs, by Newton's and Schulz'
    iteration. Kernels are padded with zeros, which it leaves alone, and stacked (`packing`): that makes fifteen
    products of hundreds of small ones. With `packing`, parameters, gradients and state are packed by it already.
    """

    def init(params: Any) -> MuonState:
        zeros = jax.tree.map(jnp.zeros_like, params)
        return MuonState(jnp.int32(0), zeros, _others(zeros))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, MuonState]:
        def mixed(share: Any, old: Tensors, new: Tensors) -> Tensors:
            return {name: share * old[name] + (1 - share) * new[name] for name in old}

        def unbiased(average: Tensors, share: Any, count: Array) -> Tensors:
            return {name: each / (1 - share**count) for name, each in average.items()}

        count = state.number + 1
        first = mixed(momentum, state.first, updates)
        ahead = mixed(momentum, unbiased(first, momentum, count + 1), unbiased(updates, momentum, count))
        squares = {name: jnp.square(updates[name]) for name in state.second}
        second = mixed(square_momentum, state.second, squares)
        spread = unbiased(second, square_momentum, count)
        steps = {name: ahead[name] / (jnp.sqrt(each) + _EPSILON) for name, each in spread.items()}
        kernels = {name: each for name, each in ahead.items() if name not in steps}
        pack = packing or Packing(kernels)
        turned = _turned(kernels if packing else pack.pack(kernels), pack)
        for name, each in (turned if packing else pack.unpack(turned)).items():
            steps[name] = each + weight_decay * params[name]
        return {name: -steps[name] for name in updates}, MuonState(count, first, second)

    return optax.GradientTransformation(init, update)


def _others(tensors: Tensors) -> Tensors:
    return {name: tensor for name, tensor in tensors.items() if not is_kernel(name, tensor)}


def _turned(stacks: Tensors, packing: Packing) -> Tensors:
    return {name: _SIZE * jnp.sqrt(packing.stacks[name].longest) * orthogonal(x) for name, x in stacks.items()}


def orthogonal(x: Array) -> Array:
    """Float32[N, R, C], R <= C: matrices with the same singular vectors as `x` and singular values near 1."""
    length = jnp.sqrt(jnp.sum(jnp.square(x), (1, 2), keepdims=True))
    # Otherwise XLA makes all that comes before part of the first product, and compiles it for each way to multiply.
    x = lax.optimization_barrier(x / (length + _EPSILON))
    first, second, third = _COEFFICIENTS
    for _ in range(_ITERATIONS):
        square = x @ x.swapaxes(1, 2)
        x = first * x + (second * square + third * square @ square) @ x
    return x
