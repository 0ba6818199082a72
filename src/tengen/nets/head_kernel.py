"""The heads up to the value's hidden layer, as a GPU program for each board (Pallas, Triton).

For XLA this is a dozen kernels, most of which take longer to start than to run. Its version stays beside the call: for
other devices, and as what the tests compare with.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

from tengen.nets import pool_kernel
from tengen.nets.affine_kernel import backwards
from tengen.nets.layers import activate
from tengen.nets.pool_kernel import Grid, Pool, Tile
from tengen.nets.spec import Activation

_MOST_OUTPUTS = 4  # per point, and apart from points: each is a sum of its own


class Weights(NamedTuple):
    """The layers, of P regular channels, P pooled ones and V of the value, in this order."""

    shift: Array  # [2 P + V]: the bias of the neck
    bias: Array  # [3 P, P]: what the pool adds to the regular channels
    points: Array  # [P, kinds N]: N logits per point
    extra: Array | None  # [3 P, kinds E]: E logits of no point, from the pool
    hidden: Array  # [3 V, hidden]
    hidden_bias: Array  # [hidden]
    ownership: Array | None  # [V, 1]


class Found(NamedTuple):
    """What the program says."""

    policies: Array  # Float32[B, kinds, A]: the logits of the points, then the others
    hidden: Array  # [B, hidden], activated
    ownership: Array | None  # Float32[B, H, W]


def suits(x: Array, weights: Weights) -> bool:
    """Whether `run` takes them."""
    extra = 0 if weights.extra is None else weights.extra.shape[1]
    few = max(weights.points.shape[1], extra) <= _MOST_OUTPUTS
    return few and pool_kernel.suits(x, weights.bias) and pool_kernel.suits(x, weights.hidden)


def run(
    x: Array, weights: Weights, *, kinds: int, scales: tuple[float, float], activation: Activation, interpret: bool
) -> Found:
    """Of the neck's [B, H, W, 2 P + V] without its bias. `scales` are Board's `side` and `square`."""
    batch, height, width, channels = x.shape
    actions = _actions(weights, height * width, kinds)
    units = len(weights.hidden_bias)
    grid = Grid.of(height * width, channels)
    shapes = [
        jax.ShapeDtypeStruct((batch * kinds * actions,), jnp.float32),
        jax.ShapeDtypeStruct((batch * units,), x.dtype),
        jax.ShapeDtypeStruct((batch * height * width,), jnp.float32),
    ]
    policies, hidden, *ownership = pl.pallas_call(
        partial(_heads, _Sizes.of(weights, grid, kinds), scales, activation),
        grid=(batch,),
        out_shape=shapes[: 2 if weights.ownership is None else 3],
        interpret=interpret,
        compiler_params=plgpu.CompilerParams(num_warps=grid.plan.warps),
        name="heads",
    )(x.reshape(-1), jax.tree.map(jnp.ravel, weights))
    return Found(
        policies.reshape(batch, kinds, actions),
        hidden.reshape(batch, units),
        ownership[0].reshape(batch, height, width) if ownership else None,
    )


def _actions(weights: Weights, points: int, kinds: int) -> int:
    """Of one policy."""
    extra = 0 if weights.extra is None else weights.extra.shape[1]
    return (points * weights.points.shape[1] + extra) // kinds


class _Sizes(NamedTuple):
    """What is fixed when the program is compiled."""

    grid: Grid
    kinds: int
    policy: int  # channels, regular and pooled each
    value: int  # channels
    units: int  # of the hidden layer
    actions: int
    per_point: int
    extra: int

    @classmethod
    def of(cls, weights: Weights, grid: Grid, kinds: int) -> "_Sizes":
        policy, outputs = weights.points.shape
        return cls(
            grid=grid,
            kinds=kinds,
            policy=policy,
            value=weights.hidden.shape[0] // 3,
            units=len(weights.hidden_bias),
            actions=_actions(weights, grid.points, kinds),
            per_point=outputs // kinds,
            extra=0 if weights.extra is None else weights.extra.shape[1] // kinds,
        )

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """First channel and number of channels: regular, pooled, of the value."""
        return (0, self.policy), (self.policy, self.policy), (2 * self.policy, self.value)


def _heads(
    sizes: _Sizes, scales: tuple[float, float], activation: Activation, x: Any, weights: Weights, *outputs: Any
) -> None:
    found = Found(outputs[0], outputs[1], outputs[2] if len(outputs) > 2 else None)
    grid, board = sizes.grid, backwards()
    tiles = grid.tiles()

    def fetch(tile: Tile) -> list[Array]:
        return [grid.load(x, board, tile, *part) for part in sizes.parts]

    # Where they all fit, everything is on its way from memory before anything is waited for.
    fetched = [fetch(tile) for tile in tiles] if grid.small else map(fetch, tiles)
    shifts = [pool_kernel.vector(weights.shift, first, 1, count)[None] for first, count in sizes.parts]
    regular, pooled, values = [], None, None
    for tile, numbers in zip(tiles, fetched, strict=True):
        channels = [x.astype(jnp.float32) + shift for x, shift in zip(numbers, shifts, strict=True)]
        regular.append(channels[0])
        pooled = pool_kernel.further(pooled, tile, activate(channels[1], activation))
        value = activate(channels[2], activation)
        values = pool_kernel.further(values, tile, value)
        if found.ownership is not None:
            column = pool_kernel.vector(weights.ownership, 0, 1, sizes.value)
            _store_points(found.ownership, board * grid.points, 1, tile, jnp.sum(value * column[None], 1))
    pool, mean = pool_kernel.pool_of(pooled, grid.points), pool_kernel.pool_of(values, grid.points).mean
    # Weights are read when they are needed: in registers from the start, they leave no room for other boards.
    hidden = _hidden_weights(sizes, scales, weights)
    _store_hidden(sizes, activation, board, mean, hidden, weights.hidden_bias, found.hidden)
    bias = pool_kernel.dense_weights(weights.bias, sizes.policy, sizes.policy, scales[0])
    regular = [numbers + pool_kernel.dense_of(pool, bias)[None] for numbers in regular]
    _store_policies(sizes, scales[0], activation, board, (tiles, regular), pool, weights, found.policies)


def _hidden_weights(sizes: _Sizes, scales: tuple[float, float], weights: Weights) -> Array:
    """Float32[lanes, lanes]: what the hidden layer makes of the means."""
    size = sizes.value * sizes.units
    kernel, *scaled = (
        pool_kernel.matrix(weights.hidden, part * size, sizes.units, sizes.value, sizes.units) for part in range(3)
    )
    return kernel + scales[0] * scaled[0] + scales[1] * scaled[1]


def _store_hidden(
    sizes: _Sizes, activation: Activation, board: Array, mean: Array, kernel: Array, bias: Any, out: Any
) -> None:
    """The hidden layer, of the mean Float32[lanes] of the value's channels."""
    hidden = jnp.sum(mean[:, None] * kernel, 0) + pool_kernel.vector(bias, 0, 1, sizes.units)
    lane = jnp.arange(pool_kernel.lanes(sizes.units))
    mask = None if len(lane) == sizes.units else lane < sizes.units
    plgpu.store(out.at[board * sizes.units + lane], activate(hidden, activation).astype(out.dtype), mask=mask)


def _store_policies(
    sizes: _Sizes, side: float, activation: Activation, board: Array, regular: tuple[list[Tile], list[Array]],
    pool: Pool, weights: Weights, out: Any,
) -> None:  # fmt: skip
    """The logits, of Float32[rows, lanes] regular channels of each tile, with their bias, and the pool."""
    policy, outputs, extras = sizes.policy, sizes.kinds * sizes.per_point, sizes.kinds * sizes.extra
    for tile, numbers in zip(*regular, strict=True):
        x = activate(numbers, activation)
        for output in range(outputs):
            kind, way = divmod(output, sizes.per_point)
            column = pool_kernel.vector(weights.points, output, outputs, policy)
            start = (board * sizes.kinds + kind) * sizes.actions + way
            _store_points(out, start, sizes.per_point, tile, jnp.sum(x * column[None], 1))
    for output in range(extras):
        kind, way = divmod(output, sizes.extra)
        mean, scaled, largest = (
            pool_kernel.vector(weights.extra, part * policy * extras + output, extras, policy) for part in range(3)
        )
        logit = jnp.sum(pool.mean * (mean + side * scaled) + pool.largest * largest)
        out[(board * sizes.kinds + kind) * sizes.actions + sizes.grid.points * sizes.per_point + way] = logit


def _store_points(out: Any, start: Array, step: int, tile: Tile, numbers: Array) -> None:
    """Float32[rows] to every `step`-th place from `start` on."""
    plgpu.store(out.at[start + tile.point * step], numbers[:, None], mask=tile.on)
