"""Muon: the update of every kernel is made orthogonal, seen as a matrix between all inputs and the outputs.

Newton's and Schulz' iteration on each kernel by itself means hundreds of small matrix products. Kernels are therefore
padded with zeros, which the iteration leaves alone, and stacked (`packing`): then it means fifteen products in all.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from tengen.train.packing import Packing, Tensors, is_kernel

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

    With `packing`, parameters, gradients and state are packed by it.
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
