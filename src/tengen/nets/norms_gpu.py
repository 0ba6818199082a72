"""Batch normalisation in training as GPU programs (`norms.cu`), together with what stands around it.

The addition before a norm and the activation after it happen in the norm's own passes over the numbers, and so does the
addition of gradients where the residual stream goes on beside it. `blocks.py` has the plain version, which serves other
devices and which tests compare with.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Float32

from tengen import gpu
from tengen.gpu.program import defines
from tengen.nets.gpu import ACTIVATIONS, MOST_NUMBERS, TYPES
from tengen.nets.specs import Activation

_BLOCKS = 264  # two for each multiprocessor of an H200; each leaves a sum per channel
_MOST_THREADS = 512
_FINISH = 512  # threads of the small programs, which add up the sums of all blocks
_REPEATS = {"norm_moments": 4, "norm_apply": 4, "norm_sums": 2, "norm_gradient": 2}  # rows that a thread reads at once
_MOST_CHANNELS = 1024


@dataclass(frozen=True)
class NormPlan:
    """What is the same for all batches."""

    activation: Activation
    epsilon: float
    first: int = 0  # the first of the input's channels that are normalised
    forks: bool = False  # whether the sum of input and addition has other uses, and is a result


def suits(x: Array, channels: int, first: int = 0) -> bool:
    """Whether the programs support `channels` channels of the array, from `first` on."""
    whole = all(number % 8 == 0 for number in (x.shape[-1], channels, first))
    return whole and channels <= _MOST_CHANNELS and x.size < MOST_NUMBERS and x.dtype.name in TYPES


class Normed(NamedTuple):
    """The results of a norm in training."""

    total: Any  # Float[B, H, W, C]: the sum of input and addition; None unless the plan forks
    out: Float[Array, "batch height width channels"]  # the sum normalised and activated
    mean: Float32[Array, " channels"]  # of the sum; these two have no gradient
    variance: Float32[Array, " channels"]


def normalize(
    x: Float[Array, "batch height width inputs"],
    added: Float[Array, "batch rows columns channels"] | None,
    scale: Float32[Array, " channels"],
    shift: Float32[Array, " channels"],
    on: Bool[Array, "batch height width 1"] | None,
    plan: NormPlan,
) -> Normed:
    """The input plus `added`, which has numbers for each point or for each board, normalised and activated.

    Points that are not `on` the board do not count, and the result is 0 there.
    """
    return _normalize(x, added, scale, shift, on, plan)  # type: ignore[return-value]


@partial(jax.custom_vjp, nondiff_argnums=(5,))
def _normalize(x: Array, added: Array | None, scale: Array, shift: Array, on: Array | None, plan: NormPlan) -> Normed:
    return _forward(x, added, scale, shift, on, plan)[0]


def _forward(
    x: Array, added: Array | None, scale: Array, shift: Array, on: Array | None, plan: NormPlan
) -> tuple[Normed, Any]:
    points, channels = math.prod(x.shape[:-1]), len(scale)
    vectors = jax.ShapeDtypeStruct((channels,), jnp.float32)
    shape = jax.ShapeDtypeStruct((*x.shape[:-1], channels), x.dtype)
    mask = _mask(on)
    kind = 0 if added is None else 2 if added.shape[1] == 1 else 1
    passes = partial(_pass, plan=plan, channels=channels, masked=on is not None)
    more = [] if added is None else [added]
    partials, *totals = passes(
        "norm_moments", x, [*more, *mask[:1]], [shape] if more else [], added=kind, first=plan.first, backwards=True
    )
    total, first = (totals[0], 0) if totals else (x, plan.first)
    finish = _small("norm_finish", partials, points, on is not None, plan)
    mean, variance, factor, addend = gpu.call(
        finish, [partials, scale, shift, *mask[1:]], [vectors] * 4, blocks=-(-channels // 32)
    )
    (out,) = passes("norm_apply", total, [factor, addend, *mask[:1]], [shape], first=first)
    results = Normed(total if plan.forks else None, out, mean, variance)
    return results, (total, None if added is None else added.shape, x.shape, on, mean, variance, factor, addend)


def _backward(plan: NormPlan, kept: Any, changes: Any) -> tuple[Any, ...]:
    total, added, shape, on, mean, variance, factor, addend = kept
    points, channels = math.prod(shape[:-1]), len(mean)
    first = 0 if total.shape[-1] == channels else plan.first
    vectors = jax.ShapeDtypeStruct((channels,), jnp.float32)
    mask = _mask(on)
    passes = partial(_pass, plan=plan, channels=channels, masked=on is not None, first=first)
    (partials,) = passes("norm_sums", total, [changes.out, factor, addend, mean, *mask[:1]], [], backwards=True)
    slopes = _small("norm_slopes", partials, points, on is not None, plan)
    of_scale, of_shift, slope, rest = gpu.call(
        slopes, [partials, mean, variance, factor, *mask[1:]], [vectors] * 4, blocks=-(-channels // 32)
    )
    others = [changes.total] if plan.forks else []
    result = jax.ShapeDtypeStruct((*shape[:-1], channels), total.dtype)
    (of_total,) = passes(
        "norm_gradient", total, [changes.out, factor, addend, slope, rest, *others, *mask[:1]], [result]
    )
    before = plan.first
    of_x = jnp.pad(of_total, ((0, 0), (0, 0), (0, 0), (before, shape[-1] - before - channels)))
    if added is None:
        of_added = None
    elif added[1] == 1:
        of_added = jnp.sum(of_total, (1, 2), dtype=jnp.float32, keepdims=True).astype(total.dtype)
    else:
        of_added = of_total
    return of_x, of_added, of_scale, of_shift, None


_normalize.defvjp(_forward, _backward)


def _mask(on: Array | None) -> list[Array]:
    """Which rows are on a board, and how many are."""
    return [] if on is None else [on.astype(jnp.uint8), jnp.sum(on, dtype=jnp.float32).reshape(1)]


def _pass(
    entry: str,
    x: Array,
    others: list[Array],
    outputs: list[jax.ShapeDtypeStruct],
    *,
    plan: NormPlan,
    channels: int,
    masked: bool,
    first: int,
    added: int = 0,
    backwards: bool = False,
) -> list[Array]:
    """A program that reads all numbers of `x`. The results of those that add up begin with the sums of the blocks."""
    rows, width = math.prod(x.shape[:-1]), x.shape[-1]
    vector = math.gcd(16 // x.dtype.itemsize, width, channels, first)
    groups = channels // vector
    threads = _threads(groups)
    at_once, repeats = threads // groups, _REPEATS[entry]
    sums = entry in ("norm_moments", "norm_sums")
    blocks = -(-rows // (at_once * repeats))
    blocks = min(blocks, _BLOCKS) if sums else blocks
    program = gpu.Program(
        "nets/norms.cu",
        entry,
        threads=threads,
        defines=defines(
            TYPE=TYPES[x.dtype.name],
            THREADS=threads,
            VECTOR=vector,
            ROWS=rows,
            CHANNELS=channels,
            WIDTH=width,
            FIRST=first,
            POINTS=x.shape[1] * x.shape[2],
            ACTIVATION=ACTIVATIONS[plan.activation],
            ADDED=added,
            MASKED=masked,
            FORKS=plan.forks,
            REPEATS=repeats,
            BACKWARDS=backwards,
            **{entry.upper(): 1},
        ),
    )
    partials = [jax.ShapeDtypeStruct((blocks, 2, channels), jnp.float32)] if sums else []
    return gpu.call(program, [x, *others], [*partials, *outputs], blocks=blocks)


def _threads(groups: int) -> int:
    """As many threads as can all be busy, if that is possible with whole warps."""
    even = math.lcm(groups, 32)
    return _MOST_THREADS // even * even if even <= _MOST_THREADS else _MOST_THREADS


def _small(entry: str, partials: Array, rows: int, masked: bool, plan: NormPlan) -> gpu.Program:
    """A program that adds up the sums of all blocks."""
    parts, _, channels = partials.shape
    return gpu.Program(
        "nets/norms.cu",
        entry,
        threads=_FINISH,
        defines=defines(
            THREADS=_FINISH,
            ROWS=rows,
            CHANNELS=channels,
            PARTS=parts,
            MASKED=masked,
            EPSILON=plan.epsilon,
            **{entry.upper(): 1},
        ),
    )
