"""All heads of a folded tower as a GPU program (Pallas, Triton), one per board. See docs/performance.md.

The trunk is read once and nothing of a board's size is written but the logits; XLA needs a dozen passes. The plain
version is in heads.py: for other devices, for boards of several sizes, and as what the tests compare with.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

from tengen.nets.layers import activate
from tengen.nets.spec import Activation


class HeadWeights(NamedTuple):
    """All that lies between the trunk and what is left to do once per position. C trunk, P policy, V value channels."""

    scale: Array  # Float32[C]: the norm at the tip of the trunk
    shift: Array  # Float32[C]
    neck: Array  # [C, 2 P + V]: policy channels, pooled ones, value channels
    bias: Array  # [2 P + V]
    pool: Array  # [3 P, P]
    points: Array  # [P, K]: the logits of K policies
    owner: Array  # [V]: ownership


class HeadSums(NamedTuple):
    """Float32: what the heads make of boards of N points."""

    points: Array  # [B, N, K]: logits of the points
    pool: Array  # [B, 3 P]: the policy's pool
    mean: Array  # [B, V]: means of the value channels
    owner: Array  # [B, N]: ownership


def suits(channels: int, policy: int, value: int) -> bool:
    """Whether `run` takes heads of that shape. Larger ones do not fit, and beside their towers they cost nothing."""
    return channels % 16 == 0 and channels <= 256 and max(policy, value) <= 64


def run(x: Array, weights: HeadWeights, *, side: float, activation: Activation, interpret: bool) -> HeadSums:
    """The heads on [B, H, W, C], one program per board, in a single pass over the trunk. `side` is `Board.side`."""
    batch, height, width, channels = x.shape
    points, (policy, kinds), value = height * width, weights.points.shape, len(weights.owner)
    shapes = ((batch, points, kinds), (batch, 3 * policy), (batch, value), (batch, points))
    sizes = _Sizes(points, channels, policy, value, kinds)
    call = pl.pallas_call(
        partial(_kernel, sizes=sizes, side=side, activation=activation),
        grid=(batch,),
        out_shape=[jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes],
        interpret=interpret,
        compiler_params=plgpu.CompilerParams(num_warps=8 if sizes.rows == 128 else 4, num_stages=1),
    )
    return HeadSums(*call(x.reshape(batch, points, channels), *weights))


class _Sizes(NamedTuple):
    points: int
    channels: int
    policy: int
    value: int
    kinds: int

    @property
    def rows(self) -> int:
        """Points in one tile."""
        return min(128, max(16, _power_of_two(self.points)))

    @property
    def step(self) -> int:
        """Trunk channels in one tile: the largest power of two that divides their number, up to 64."""
        return math.gcd(self.channels, 64)


def _kernel(*refs: Any, sizes: _Sizes, side: float, activation: Activation) -> None:
    x: Any = refs[0]
    weights: Any = HeadWeights(*refs[1:8])
    out: Any = HeadSums(*refs[8:])
    board = pl.program_id(0)
    policy, value = _Lanes(sizes.policy), _Lanes(sizes.value)
    tiles = -(-sizes.points // sizes.rows)

    def neck(tile: Any, *parts: tuple[int, _Lanes]) -> tuple[Array, list[Array]]:
        """The points of a tile, and Float32[rows, padded] for each part: those lanes of the neck's channels."""
        point = tile * sizes.rows + jnp.arange(sizes.rows)
        mask = jnp.broadcast_to((point < sizes.points)[:, None], (sizes.rows, sizes.step))
        totals = [jnp.zeros((sizes.rows, lanes.padded)) + lanes.row(weights.bias, first) for first, lanes in parts]
        for start in range(0, sizes.channels, sizes.step):
            channel = start + jnp.arange(sizes.step)
            wide = plgpu.load(x.at[board, point[:, None], channel[None]], mask=mask, other=0).astype(jnp.float32)
            wide = wide * plgpu.load(weights.scale.at[channel])[None] + plgpu.load(weights.shift.at[channel])[None]
            piece = activate(wide, activation).astype(x.dtype)
            for number, (first, lanes) in enumerate(parts):
                totals[number] += plgpu.dot(piece, lanes.rows(weights.neck, channel, first))
        return point, totals

    regular_part, pooled_part, value_part = (0, policy), (sizes.policy, policy), (2 * sizes.policy, value)

    def pool(tile: Any, carry: tuple[Array, Array, Array], more: list[Array]) -> tuple[Array, Array, Array]:
        """Sums of the pooled and the value channels; on the way, who owns the points."""
        # A board of one tile is looked at once; of others, the policy takes a second look.
        parts = (pooled_part, value_part, regular_part) if tiles == 1 else (pooled_part, value_part)
        point, (pooled, values, *regular) = neck(tile, *parts)
        more += regular
        on = (point < sizes.points)[:, None]
        pooled, values = activate(pooled, activation), activate(values, activation)
        owner = jnp.sum(values * value.row(weights.owner, 0), 1)
        plgpu.store(out.owner.at[board, point], owner, mask=point < sizes.points)
        total, largest, value_total = carry
        return (
            total + jnp.sum(jnp.where(on, pooled, 0), 0),
            jnp.maximum(largest, jnp.max(jnp.where(on, pooled, -jnp.inf), 0)),
            value_total + jnp.sum(jnp.where(on, values, 0), 0),
        )

    def answer(tile: Any, bias: Array, seen: list[Array]) -> Array:
        """The logits of the points."""
        point = tile * sizes.rows + jnp.arange(sizes.rows)
        regular = seen[0] if seen else neck(tile, regular_part)[1][0]
        regular = activate(regular + bias[None], activation)
        for kind in range(sizes.kinds):
            logits = jnp.sum(regular * policy.column(weights.points, kind)[None], 1)
            plgpu.store(out.points.at[board, point, kind], logits, mask=point < sizes.points)
        return bias

    nothing = (jnp.zeros(policy.padded), jnp.full(policy.padded, -jnp.inf), jnp.zeros(value.padded))
    regular: list[Array] = []
    total, largest, value_total = _for(tiles, partial(pool, more=regular), nothing)
    mean = total / sizes.points
    bias = jnp.zeros(policy.padded)
    for number, part in enumerate((mean, mean * side, jnp.where(policy.real, largest, 0))):
        row = number * sizes.policy + policy.lane
        bias += jnp.sum(part[:, None] * policy.square(weights.pool, row), 0)
        plgpu.store(out.pool.at[board, row], part, mask=policy.real)
    plgpu.store(out.mean.at[board, value.lane], value_total / sizes.points, mask=value.real)
    _for(tiles, partial(answer, seen=regular), bias)


class _Lanes:
    """Channels of an array, padded to a power of two, since tiles must have such sizes; padding reads as zero."""

    def __init__(self, size: int) -> None:
        self.padded = max(16, _power_of_two(size))
        self.lane = jnp.arange(self.padded)
        self.real = self.lane < size

    def row(self, ref: Any, first: int) -> Array:
        """Float32[1, padded] of a vector, from `first`."""
        return plgpu.load(ref.at[first + self.lane], mask=self.real, other=0).astype(jnp.float32)[None]

    def column(self, ref: Any, number: int) -> Array:
        """Float32[padded]: one column of a matrix."""
        return plgpu.load(ref.at[self.lane, number], mask=self.real, other=0).astype(jnp.float32)

    def rows(self, ref: Any, row: Array, first: int) -> Array:
        """[R, padded]: those rows of a matrix, its columns from `first`."""
        mask = jnp.broadcast_to(self.real[None], (len(row), self.padded))
        return plgpu.load(ref.at[row[:, None], first + self.lane[None]], mask=mask, other=0)

    def square(self, ref: Any, row: Array) -> Array:
        """Float32[padded, padded]: those rows of a matrix which has a row and a column for each channel."""
        mask = self.real[:, None] & self.real[None]
        return plgpu.load(ref.at[row[:, None], self.lane[None]], mask=mask, other=0).astype(jnp.float32)


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _for(count: int, body: Callable[[Any, Any], Any], start: Any) -> Any:
    return body(0, start) if count == 1 else lax.fori_loop(0, count, body, start)
