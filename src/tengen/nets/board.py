"""Masks for the points on the board, and sums over those points."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32

# As in KataGo: pooled values are also given scaled by the difference between the board's side and 14, a usual size.
_MIDDLE_SIDE = 14
_SIDE_SCALE = 10
Trunk = Float[Array, "batch height width channels"]


class BoardMask(NamedTuple):
    """The points on the board. Without a mask all points count, and nothing is computed."""

    on: Bool[Array, "batch height width 1"] | None  # None: all points of all boards
    points: Float32[Array, "batch 1"] | int  # the number of points on each board

    @classmethod
    def of(cls, planes: Bool[Array, "batch height width planes"], full: bool) -> "BoardMask":
        """From plane 0, which marks the board; `full` promises that it marks every point."""
        if full:
            return cls(None, planes.shape[1] * planes.shape[2])
        return cls(planes[..., :1], jnp.sum(planes[..., :1], (1, 2), dtype=jnp.float32))

    @property
    def side(self) -> Float32[Array, "batch 1"] | float:
        """The side of a square board with as many points, as a small number."""
        side = math.sqrt(self.points) if isinstance(self.points, int) else jnp.sqrt(self.points)
        return (side - _MIDDLE_SIDE) / _SIDE_SCALE

    @property
    def square(self) -> Float32[Array, "batch 1"] | float:
        """The square of `side`, about 0 for usual sizes."""
        return self.side**2 - 0.1

    def hide(self, x: Trunk) -> Trunk:
        """`x` with zeros off the board."""
        return x if self.on is None else jnp.where(self.on, x, 0)

    def mean(self, x: Trunk) -> Float32[Array, "batch channels"]:
        """The mean over the points of each board."""
        return jnp.sum(self.hide(x), (1, 2), dtype=jnp.float32) / self.points

    def pool(self, x: Trunk) -> Float[Array, "batch 3*channels"]:
        """Mean, mean scaled by the board's side, and maximum."""
        mean = self.mean(x)
        shown = x if self.on is None else jnp.where(self.on, x, -jnp.inf)
        largest = _largest(shown.reshape(len(x), -1, x.shape[-1])).astype(jnp.float32)
        return jnp.concatenate([mean, mean * self.side, largest], -1).astype(x.dtype)

    def scaled(self, mean: Float32[Array, "batch channels"]) -> Float32[Array, "batch 3*channels"]:
        """The means as they are, scaled by the board's side, and by its square."""
        return jnp.concatenate([mean, mean * self.side, mean * self.square], -1)

    def moments(self, x: Trunk) -> tuple[Float32[Array, " channels"], Float32[Array, " channels"]]:
        """Mean and variance over all points of all boards."""
        wide = x.astype(jnp.float32)
        on = None if self.on is None else jnp.broadcast_to(self.on, x.shape)
        mean = jnp.mean(wide, (0, 1, 2), where=on)
        # Both means come from one pass over `x`; float32 is precise enough for the difference.
        return mean, jnp.maximum(jnp.mean(jnp.square(wide), (0, 1, 2), where=on) - jnp.square(mean), 0)


@jax.custom_vjp
def _largest(x: Float[Array, "batch points channels"]) -> Float[Array, "batch channels"]:
    """The maximum over the points, with a gradient that uses its position.

    JAX's own gradient compares all values with the maximum. If XLA computes them a second time and rounds them
    differently, none is equal, and the gradient is 0 / 0.
    """
    return jnp.max(x, 1)


def _largest_forward(x: Array) -> tuple[Array, tuple[Array, Array]]:
    return jnp.max(x, 1), (jnp.argmax(x, 1), jnp.arange(x.shape[1]))


def _largest_backward(kept: tuple[Array, Array], change: Array) -> tuple[Array]:
    where, numbers = kept
    return (jnp.where(numbers[None, :, None] == where[:, None], change[:, None], 0),)


_largest.defvjp(_largest_forward, _largest_backward)
