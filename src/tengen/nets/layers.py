"""Convolutions, dense layers and activations. Parameters are float32; a layer computes in the type of its input."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Float, Float32

from tengen.nets.specs import AnyActivation, Dtype


def activate(x: Float[Array, "*shape"], activation: AnyActivation) -> Float[Array, "*shape"]:
    """The activation in the type of `x`. Every one maps 0 to 0; those of towers stay above -1, as KataGo requires."""
    if activation in ("relu", "relu_2"):
        positive = jnp.maximum(x, 0)
        return positive if activation == "relu" else jnp.square(positive)
    wide = x.astype(jnp.float32)  # in registers only; exp in bfloat16 would be too imprecise
    return getattr(jax.nn, activation)(wide).astype(x.dtype)


def _kernel(shape: tuple[int, ...], gain: float, rngs: nnx.Rngs) -> nnx.Param:
    """Random numbers scaled so that the layer and a relu keep the size of their input, times `gain`."""
    *inputs, outputs = shape
    bound = gain * math.sqrt(6 / math.prod(inputs))
    size = math.prod(shape)
    # Compiling takes longer than drawing, so few shapes are drawn: flat ones (XLA's CPU compiler needs twenty times as
    # long for four dimensions), with sizes rounded up to a power of two, at least 2^17, which begin with the same
    # numbers.
    room = max(1 << (size - 1).bit_length(), 1 << 17)
    numbers = jax.random.uniform(rngs.params(), (room,), minval=-bound, maxval=bound)
    if not isinstance(numbers, Tracer):  # cut on the host, where nothing is compiled
        return nnx.Param(on_device(np.asarray(numbers)[:size].copy().reshape(*inputs, outputs)))
    return nnx.Param(numbers[:size].reshape(*inputs, outputs))


def on_device(values: Any) -> Any:
    """Numbers of the host as an array of JAX; `jnp.asarray` would compile a program for each shape."""
    return jax.device_put(np.asarray(values, np.float32))


def scaled(values: Float32[Array, "..."], factors: Sequence[float]) -> Float32[Array, "..."]:
    """New parameters times `factors`, on the host, where nothing is compiled, unless they are being traced."""
    if isinstance(values, Tracer):
        return values * jnp.asarray(factors, jnp.float32)
    return on_device(np.asarray(values) * np.asarray(factors, np.float32))


def filled(number: float, size: int) -> Float32[Array, " size"]:
    """A vector of equal numbers, made on the host, where nothing is compiled."""
    return on_device(np.full(size, number))


class _Linear(nnx.Module):
    """The common part of convolutions and dense layers: outputs on the last axis of the kernel, an optional bias."""

    kernel: nnx.Param  # Float32[..., I, O]
    bias: nnx.Param | None  # Float32[O]

    def absorb(self, scale: Float32[Array, " outputs"], shift: Float32[Array, " outputs"] | None) -> None:
        """Multiplies the outputs by `scale`, then adds `shift`."""
        self.kernel = nnx.Param(self.kernel[...] * scale)
        bias = 0.0 if self.bias is None else self.bias[...] * scale
        if shift is not None:
            self.bias = nnx.Param(bias + shift)
        elif self.bias is not None:
            self.bias = nnx.Param(bias)

    def cast(self, dtype: Dtype) -> None:
        """Stores the parameters in another type."""
        self.kernel = nnx.Param(self.kernel[...].astype(dtype))
        if self.bias is not None:
            self.bias = nnx.Param(self.bias[...].astype(dtype))

    def biased(self, x: Float[Array, "*batch outputs"]) -> Float[Array, "*batch outputs"]:
        return x if self.bias is None else x + self.bias[...].astype(x.dtype)


class Conv(_Linear):
    """A convolution that keeps the size of the board, padded with zeros."""

    def __init__(
        self, size: int, inputs: int, outputs: int, rngs: nnx.Rngs, *, groups: int = 1, gain: float = 1.0
    ) -> None:
        self.kernel = _kernel((size, size, inputs // groups, outputs), gain, rngs)
        self.bias = nnx.data(None)
        self.groups = groups

    def __call__(self, x: Float[Array, "batch height width inputs"]) -> Float[Array, "batch height width outputs"]:
        return self.biased(self.unbiased(x))

    def unbiased(self, x: Float[Array, "batch height width inputs"]) -> Float[Array, "batch height width outputs"]:
        """The outputs without the bias, which is added in a later pass."""
        return convolve(x, self.kernel[...].astype(x.dtype), self.groups)


def convolve(
    x: Float[Array, "batch height width inputs"], kernel: Float[Array, "side side _ outputs"], groups: int = 1
) -> Float[Array, "batch height width outputs"]:
    if kernel.shape[0] == 1 and groups == 1:
        return x @ kernel[0, 0]
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=groups)


class Dense(_Linear):
    times: int = 1  # how often it is applied for one position, apart from points

    def __init__(self, inputs: int, outputs: int, rngs: nnx.Rngs, *, bias: bool = False, gain: float = 1.0) -> None:
        self.kernel = _kernel((inputs, outputs), gain, rngs)
        self.bias = nnx.data(nnx.Param(filled(0, outputs)) if bias else None)

    def __call__(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
        return self.biased(x @ self.kernel[...].astype(x.dtype))


class PointDense(Dense):
    """A dense layer that is applied to every point of a board."""
