"""Which points of a batch are on the board, and sums over those alone."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

# KataGo's: pooled numbers are also given scaled by how far the board's side is from 14, a usual size.
_MIDDLE_SIDE = 14
_SIDE_SCALE = 10


class BoardMask(NamedTuple):
    """The points that count. Without a mask nothing is masked, at no cost."""

    on: Array | None  # Bool[B, H, W, 1]; None: all points of all boards
    points: Array | int  # Float32[B, 1]: how many there are on each board, or on all of them

    @classmethod
    def of(cls, planes: Array, full: bool) -> "BoardMask":
        """From Bool[B, H, W, C], whose plane 0 marks the board; `full` promises that it marks every point."""
        if full:
            return cls(None, planes.shape[1] * planes.shape[2])
        return cls(planes[..., :1], jnp.sum(planes[..., :1], (1, 2), dtype=jnp.float32))

    @property
    def side(self) -> Array | float:
        """Float32[B, 1]: the side of a square board with as many points, as a small number."""
        side = math.sqrt(self.points) if isinstance(self.points, int) else jnp.sqrt(self.points)
        return (side - _MIDDLE_SIDE) / _SIDE_SCALE

    @property
    def square(self) -> Array | float:
        """Float32[B, 1]: the square of `side`, about 0 in the middle of the sizes that are played."""
        return self.side**2 - 0.1

    def hide(self, x: Array) -> Array:
        """[B, H, W, C] with zeros off the board."""
        return x if self.on is None else jnp.where(self.on, x, 0)

    def mean(self, x: Array) -> Array:
        """Float32[B, C]: the mean of [B, H, W, C] over the points of each board."""
        return jnp.sum(self.hide(x), (1, 2), dtype=jnp.float32) / self.points

    def pool(self, x: Array) -> Array:
        """[B, 3 C] of [B, H, W, C]: mean, mean scaled by the board's side, maximum."""
        mean = self.mean(x)
        shown = x if self.on is None else jnp.where(self.on, x, -jnp.inf)
        largest = _largest(shown.reshape(len(x), -1, x.shape[-1])).astype(jnp.float32)
        return jnp.concatenate([mean, mean * self.side, largest], -1).astype(x.dtype)

    def scaled(self, mean: Array) -> Array:
        """Float32[B, 3 C] of Float32[B, C] means: as they are, scaled by the board's side and by its square."""
        return jnp.concatenate([mean, mean * self.side, mean * self.square], -1)

    def moments(self, x: Array) -> tuple[Array, Array]:
        """Float32[C] each: mean and variance of [B, H, W, C] over all points of all boards."""
        wide = x.astype(jnp.float32)
        on = None if self.on is None else jnp.broadcast_to(self.on, x.shape)
        mean = jnp.mean(wide, (0, 1, 2), where=on)
        # Both means come from one pass over `x`; float32 has digits enough for the difference.
        return mean, jnp.maximum(jnp.mean(jnp.square(wide), (0, 1, 2), where=on) - jnp.square(mean), 0)


@jax.custom_vjp
def _largest(x: Array) -> Array:
    """[B, C] of [B, N, C].

    JAX's own gradient asks which values equal the maximum. Where XLA computes them a second time and rounds them
    otherwise, none does, and the answer is 0 / 0. This one asks where the maximum is.
    """
    return jnp.max(x, 1)


def _largest_forward(x: Array) -> tuple[Array, tuple[Array, Array]]:
    return jnp.max(x, 1), (jnp.argmax(x, 1), jnp.arange(x.shape[1]))


def _largest_backward(kept: tuple[Array, Array], change: Array) -> tuple[Array]:
    where, numbers = kept
    return (jnp.where(numbers[None, :, None] == where[:, None], change[:, None], 0),)


_largest.defvjp(_largest_forward, _largest_backward)
