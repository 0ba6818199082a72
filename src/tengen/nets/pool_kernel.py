"""Global pooling, the bias that it gives and the activation, as a GPU program for each board (Pallas, Triton).

XLA needs a pass that pools, a dense layer and a pass that adds the bias; here a board is read once. XLA's version stays
beside the call: for other devices, and as what the tests compare with. `head_kernel` is made of the same parts.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

from tengen.nets.affine_kernel import MOST_NUMBERS, backwards
from tengen.nets.layers import activate
from tengen.nets.spec import Activation

_LARGEST_MATRIX = 8192  # numbers of a dense layer that a program can hold in its registers


class Plan(NamedTuple):
    """How a board is divided among the threads of a program."""

    rows: int  # points in a tile; a power of two
    warps: int


def plan(points: int) -> Plan:
    """Small tiles waste little of the last one; on large boards there would be too many."""
    return Plan(32, 4) if points <= 128 else Plan(128, 8)


def lanes(channels: int) -> int:
    """The power of two that a tile has so many channels in."""
    return 1 << (channels - 1).bit_length()


def fits(inputs: int, outputs: int) -> bool:
    """Whether a program can do a dense layer."""
    return lanes(inputs) * lanes(outputs) <= _LARGEST_MATRIX


def suits(x: Array, dense: Array) -> bool:
    """Whether `run` takes them."""
    return fits(dense.shape[0] // 3, dense.shape[1]) and x.size < MOST_NUMBERS


def run(
    x: Array, shift: Array | None, dense: Array, *, side: float, activation: Activation, interpret: bool
) -> tuple[Array, Array]:
    """Of [B, H, W, R + G or more]: activation(R channels + bias) as [B, H, W, R], and the pool [B, 3 G] of G channels.

    `shift` [R + G or more] is added to all channels before. `dense` [3 G, R] makes the bias of the pool. `side` is
    Board's.
    """
    batch, height, width, channels = x.shape
    pooled, regular = dense.shape[0] // 3, dense.shape[1]
    grid = Grid.of(height * width, channels)
    biased, pool = pl.pallas_call(
        partial(_biased, grid, regular, pooled, side, activation),
        grid=(batch,),
        out_shape=[
            jax.ShapeDtypeStruct((batch * height * width * regular,), x.dtype),
            jax.ShapeDtypeStruct((batch * 3 * pooled,), x.dtype),
        ],
        interpret=interpret,
        compiler_params=plgpu.CompilerParams(num_warps=grid.plan.warps),
        name="pool_bias",
    )(x.reshape(-1), dense.reshape(-1), shift)
    return biased.reshape(batch, height, width, regular), pool.reshape(batch, -1)


def _biased(
    grid: "Grid", regular: int, pooled: int, side: float, activation: Activation,
    x: Any, dense: Any, shift: Any, out: Any, pool_out: Any,
) -> None:  # fmt: skip
    board, tiles = backwards(), grid.tiles()
    # Where they all fit, everything is on its way from memory before anything is waited for.
    early = [grid.load(x, board, tile, 0, regular) for tile in tiles] if grid.small else None
    running = None
    to_pool = 0.0 if shift is None else vector(shift, regular, 1, pooled)[None]
    for tile, numbers in [(tile, grid.load(x, board, tile, regular, pooled)) for tile in tiles]:
        running = further(running, tile, activate(numbers.astype(jnp.float32) + to_pool, activation))
    pool = pool_of(running, grid.points)
    store_pool(pool_out, board, pool, pooled, side)
    bias = dense_of(pool, dense_weights(dense, pooled, regular, side))
    if shift is not None:
        bias += vector(shift, 0, 1, regular)
    for number, tile in enumerate(tiles):
        numbers = grid.load(x, board, tile, 0, regular) if early is None else early[number]
        found = activate(numbers.astype(jnp.float32) + bias[None], activation)
        at = (board * grid.points + tile.point) * regular + _row(regular)
        plgpu.store(out.at[at], found.astype(out.dtype), mask=_both(tile.on, _mask(regular), found.shape))


# Parts of a program


class Pool(NamedTuple):
    """Float32[lanes] each: channels over the points of a board."""

    mean: Array
    largest: Array


class Tile(NamedTuple):
    """Some points of a board."""

    point: Array  # Int32[rows, 1]
    on: Array | None  # Bool[rows, 1]: which of them there are; None: all


class Grid(NamedTuple):
    """An array [B, points, channels] as the programs read it, flat and in tiles."""

    points: int
    channels: int
    plan: Plan

    @classmethod
    def of(cls, points: int, channels: int) -> "Grid":
        return cls(points, channels, plan(points))

    @property
    def small(self) -> bool:
        """Whether all tiles of a board fit the registers."""
        return self.points <= 128

    def tiles(self) -> list[Tile]:
        """All points of a board."""
        firsts = range(0, self.points, self.plan.rows)
        points = [first + jnp.arange(self.plan.rows)[:, None] for first in firsts]
        return [
            Tile(point, point < self.points if first + self.plan.rows > self.points else None)
            for first, point in zip(firsts, points, strict=True)
        ]

    def load(self, x: Any, board: Array, tile: Tile, first: int, count: int) -> Array:
        """[rows, lanes]: channels from `first` on; 0 where there are no more, and at points that are none."""
        at = (board * self.points + tile.point) * self.channels + first + _row(count)
        return _load(x, at, _both(tile.on, _mask(count), at.shape))


class Running(NamedTuple):
    """Float32[rows, lanes] each: tiles put together, each thread by itself; the threads meet once, in `pool_of`."""

    total: Array
    largest: Array


def further(so_far: Running | None, tile: Tile, x: Array) -> Running:
    """With Float32[rows, lanes] of one more tile."""
    total, largest = _where(tile.on, x, 0.0), _where(tile.on, x, -jnp.inf)
    return (
        Running(total, largest)
        if so_far is None
        else Running(so_far.total + total, jnp.maximum(so_far.largest, largest))
    )


def pool_of(running: Running | None, points: int) -> Pool:
    """When all tiles are in it."""
    assert running is not None
    return Pool(jnp.sum(running.total, 0) / points, jnp.max(running.largest, 0))


def dense_weights(kernel: Any, inputs: int, outputs: int, side: float) -> tuple[Array, Array]:
    """Float32[lanes, lanes] each: what `kernel`, [3 inputs, outputs] flat, makes of the means and the maxima."""
    mean, scaled, largest = (matrix(kernel, part * inputs * outputs, outputs, inputs, outputs) for part in range(3))
    return mean + side * scaled, largest


def dense_of(pool: Pool, weights: tuple[Array, Array]) -> Array:
    """Float32[lanes]: the dense layer of the pool."""
    return jnp.sum(pool.mean[:, None] * weights[0] + pool.largest[:, None] * weights[1], 0)


def store_pool(out: Any, board: Array, pool: Pool, count: int, side: float) -> None:
    """Mean, mean scaled by the board's side, maximum."""
    lane = jnp.arange(lanes(count))
    mask = None if lanes(count) == count else lane < count
    for part, numbers in enumerate((pool.mean, pool.mean * side, pool.largest)):
        plgpu.store(out.at[(board * 3 + part) * count + lane], numbers.astype(out.dtype), mask=mask)


def matrix(ref: Any, first: int, step: int, rows: int, columns: int) -> Array:
    """Float32[lanes, lanes]: rows of numbers, one at `first`, each `step` after the last; 0 where there are no more."""
    row = jnp.arange(lanes(rows))[:, None]
    on = None if lanes(rows) == rows else row < rows
    at = first + row * step + _row(columns)
    return _load(ref, at, _both(on, _mask(columns), at.shape)).astype(jnp.float32)


def vector(ref: Any, first: int, step: int, count: int) -> Array:
    """Float32[lanes]: every `step`-th number from `first` on; 0 where there are no more."""
    lane = jnp.arange(lanes(count))
    return _load(ref, first + lane * step, None if lanes(count) == count else lane < count).astype(jnp.float32)


def _row(count: int) -> Array:
    """Int32[1, lanes]"""
    return jnp.arange(lanes(count))[None]


def _mask(count: int) -> Array | None:
    """Bool[1, lanes]: which channels there are; None: all."""
    return None if lanes(count) == count else _row(count) < count


def _both(rows: Array | None, columns: Array | None, shape: tuple[int, ...]) -> Array | None:
    """Bool[shape] of masks of the rows and the columns."""
    masks = [jnp.broadcast_to(mask, shape) for mask in (rows, columns) if mask is not None]
    return masks[0] & masks[1] if len(masks) > 1 else masks[0] if masks else None


def _load(ref: Any, at: Array, mask: Array | None) -> Array:
    return plgpu.load(ref.at[at]) if mask is None else plgpu.load(ref.at[at], mask=mask, other=0)


def _where(mask: Array | None, x: Array, other: float) -> Array:
    return x if mask is None else jnp.where(jnp.broadcast_to(mask, x.shape), x, other)
