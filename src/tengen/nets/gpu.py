"""The operations between the convolutions of a folded network, as GPU programs (`board.cu`).

The plain versions beside the calls serve other devices, and tests compare with them. `suits_*` check whether a program
supports the arrays.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32

from tengen import gpu
from tengen.gpu.program import defines
from tengen.nets.specs import Activation

_MOST_NUMBERS = 2**31  # indices are 32-bit
_MOST_OUTPUTS = 4  # logits per point, and logits of no point: each is a separate sum
_WIDEST = 1024  # channels of an input
_MOST_GROUPS = 128  # vectors of channels that are pooled together: at most one for each thread
_MOST_SHARED = 48 * 1024  # bytes of shared memory that a program may declare
_AFFINE = (512, 4)  # threads in a block, and rows per thread
ACTIVATIONS = {"relu": 0, "mish": 1, "silu": 2}
_TYPES = {"float32": "float", "bfloat16": "bf16"}


def _program(entry: str, x: Array, weight: Array, threads: int, activation: Activation, **more: object) -> gpu.Program:
    return gpu.Program(
        "nets/board.cu",
        entry,
        threads=threads,
        defines=defines(
            TYPE=_TYPES[x.dtype.name],
            WEIGHT=_TYPES[weight.dtype.name],
            THREADS=threads,
            CHANNELS=x.shape[-1],
            ACTIVATION=ACTIVATIONS[activation],
            **{entry.upper(): 1},
            **more,
        ),
    )


def _vector(x: Array, *counts: int) -> int:
    """How many numbers a thread reads at once: at most 16 bytes, and a divisor of each group of channels."""
    return math.gcd(16 // x.dtype.itemsize, x.shape[-1], *counts)


def _threads(points: int) -> int:
    return 128 if points <= 128 else 256


# Scale, shift and activation


def suits_affine(x: Array) -> bool:
    """Whether `affine` supports the array."""
    return x.shape[-1] % 8 == 0 and x.shape[-1] <= _WIDEST and x.size < _MOST_NUMBERS


def affine(
    x: Float[Array, "*batch channels"],
    scale: Float32[Array, " channels"],
    shift: Float32[Array, " channels"],
    *,
    activation: Activation,
) -> Float[Array, "*batch channels"]:
    """activation(x * scale + shift), in the type of `x`."""
    rows, channels = x.size // x.shape[-1], x.shape[-1]
    threads, repeats, vector = *_AFFINE, _vector(x)
    program = _program("affine", x, scale, threads, activation, VECTOR=vector, ROWS=rows, REPEATS=repeats)
    blocks = -(-rows // (repeats * (threads // (channels // vector))))
    (out,) = gpu.call(program, [x, scale, shift], [jax.ShapeDtypeStruct(x.shape, x.dtype)], blocks=blocks)
    return out


# Global pooling


def suits_pool(x: Array, dense: Array) -> bool:
    """Whether `pool_bias` supports the arrays."""
    regular, pooled = dense.shape[1], dense.shape[0] // 3
    return _fits(x, pooled, regular) and _shared_by_pool(x, dense) <= _MOST_SHARED


def _fits(x: Array, *counts: int) -> bool:
    """Whether a program can pool groups of these numbers of channels."""
    narrow = max(counts) // _vector(x, *counts) <= _MOST_GROUPS and x.shape[-1] <= _WIDEST
    return narrow and x.size < _MOST_NUMBERS


def _combined(count: int, width: int, threads: int) -> int:
    """Numbers in shared memory of a `Combined`; too many if there are not enough threads."""
    groups = count // width
    if groups > threads:
        return _MOST_SHARED
    shuffles = groups <= 32 and groups & (groups - 1) == 0
    return count * (threads // 32 if shuffles else threads // groups)


def _dense(outputs: int, weight: Array, threads: int) -> int:
    """Numbers in shared memory of the `Sums` of a `Dense` layer, whose weights have the type of `weight`."""
    widest = 16 // weight.dtype.itemsize
    groups = outputs // widest
    wide = outputs % widest == 0 and (groups & (groups - 1) == 0 or outputs > threads)
    return _combined(outputs, widest if wide else 1, threads)


def _shared_by_pool(x: Array, dense: Array) -> int:
    """Bytes of shared memory that `pool_bias` declares."""
    regular, pooled, threads = dense.shape[1], dense.shape[0] // 3, _threads(x.shape[1] * x.shape[2])
    pool = 2 * _combined(pooled, _vector(x, regular, pooled), threads)
    return 4 * (pool + 3 * pooled + regular + _dense(regular, dense, threads))


def pool_bias(
    x: Float[Array, "batch height width channels"],
    shift: Float[Array, " channels"] | None,
    dense: Float[Array, "pool regular"],
    *,
    side: float,
    activation: Activation,
) -> tuple[Float[Array, "batch height width regular"], Float[Array, "batch pool"]]:
    """activation(regular channels + bias), and the pool of the channels after them (three numbers per channel).

    `shift` is first added to all channels, `dense` turns the pool into the bias, and `side` is that of the BoardMask.
    """
    batch, height, width, _ = x.shape
    pooled, regular = dense.shape[0] // 3, dense.shape[1]
    program = _program(
        "pool_bias",
        x,
        dense,
        _threads(height * width),
        activation,
        VECTOR=_vector(x, regular, pooled),
        POINTS=height * width,
        REGULAR=regular,
        POOLED=pooled,
        SHARED=_shared_by_pool(x, dense),
        SIDE=float(side),
        SHIFT_IN="" if shift is None else ", const WEIGHT* shift_in",
        SHIFT="((const WEIGHT*)0)" if shift is None else "shift_in",
    )
    biased, pool = gpu.call(
        program,
        [x, dense] if shift is None else [x, dense, shift.astype(dense.dtype)],
        [
            jax.ShapeDtypeStruct((batch, height, width, regular), x.dtype),
            jax.ShapeDtypeStruct((batch, 3 * pooled), x.dtype),
        ],
        blocks=batch,
    )
    return biased, pool


# Heads


class HeadWeights(NamedTuple):
    """The layers. The neck has `policy` regular channels, as many pooled ones, then those of the value."""

    shift: Float[Array, " neck"]  # the bias of the neck
    bias: Float[Array, "pool policy"]  # from the pool to the regular channels
    points: Float[Array, "policy logits"]  # the logits of each point
    extra: Float[Array, "pool extra"] | None  # logits of no point, from the pool
    hidden: Float[Array, "value_pool hidden"]
    hidden_bias: Float[Array, " hidden"]
    ownership: Float[Array, "value 1"] | None


class HeadOutputs(NamedTuple):
    """The heads up to the value's hidden layer."""

    policies: Float32[Array, "batch kinds actions"]  # the logits of the points, then the others
    hidden: Float[Array, "batch hidden"]  # activated
    ownership: Float32[Array, "batch height width"] | None
    extra: dict[str, Float32[Array, "batch height width"]] | None = None  # other targets for each point


def suits_heads(x: Array, weights: HeadWeights) -> bool:
    """Whether `heads` supports the arrays."""
    extra = 0 if weights.extra is None else weights.extra.shape[1]
    few = max(weights.points.shape[1], extra) <= _MOST_OUTPUTS
    fits = few and _fits(x, weights.points.shape[0], weights.hidden.shape[0] // 3)
    return fits and _shared_by_heads(x, weights) <= _MOST_SHARED


def _shared_by_heads(x: Array, weights: HeadWeights) -> int:
    """Bytes of shared memory that `heads` declares."""
    policy, outputs = weights.points.shape
    value, threads = weights.hidden.shape[0] // 3, _threads(x.shape[1] * x.shape[2])
    vector, units = _vector(x, policy, value), weights.hidden.shape[1]
    pools = 2 * (_combined(policy, vector, threads) + _combined(value, vector, threads))
    layers = _dense(policy, weights.hidden, threads) + _dense(units, weights.hidden, threads)
    return 4 * (pools + layers + 3 * policy + 3 * value + policy + policy * outputs)


def heads(
    x: Float[Array, "batch height width neck"],
    weights: HeadWeights,
    *,
    kinds: int,
    scales: tuple[float, float],
    activation: Activation,
) -> HeadOutputs:
    """From the output of the neck without its bias. `scales` are `side` and `square` of the BoardMask."""
    batch, height, width, _ = x.shape
    points, units = height * width, len(weights.hidden_bias)
    policy, outputs = weights.points.shape
    value = weights.hidden.shape[0] // 3
    per_point, extra = outputs // kinds, 0 if weights.extra is None else weights.extra.shape[1] // kinds
    owned = weights.ownership is not None
    program = _program(
        "heads",
        x,
        weights.hidden,
        _threads(points),
        activation,
        VECTOR=_vector(x, policy, value),
        POINTS=points,
        POLICY=policy,
        VALUE=value,
        KINDS=kinds,
        PER_POINT=per_point,
        EXTRA=extra,
        UNITS=units,
        OWNERSHIP=owned,
        SHARED=_shared_by_heads(x, weights),
        SIDE=float(scales[0]),
        SQUARE=float(scales[1]),
        EXTRA_IN=", const WEIGHT* extra_kernel" if extra else "",
        OWNERSHIP_IN=", const WEIGHT* ownership" if owned else "",
        OWNERSHIP_OUT=", float* ownership_out" if owned else "",
    )
    shapes = [
        jax.ShapeDtypeStruct((batch, kinds, points * per_point + extra), jnp.float32),
        jax.ShapeDtypeStruct((batch, units), x.dtype),
        jax.ShapeDtypeStruct((batch, height, width), jnp.float32),
    ]
    arrays = [part.astype(weights.hidden.dtype) for part in weights if part is not None]
    policies, hidden, *ownership = gpu.call(program, [x, *arrays], shapes[: 3 if owned else 2], blocks=batch)
    return HeadOutputs(policies, hidden, ownership[0] if owned else None)
