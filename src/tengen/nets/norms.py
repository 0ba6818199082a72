"""Batch normalisation with running statistics, and what is left of it when a network is folded."""

import jax.numpy as jnp
from flax import nnx
from jax import Array, lax

from tengen.nets.board import BoardMask

# As in KataGo.
_EPSILON = 1e-4
# The running statistics remember about the last hundred batches.
_NEW_SHARE = 0.01


class Norm(nnx.Module):
    """Batch normalisation over the points on the board. Training uses the batch and updates the running statistics."""

    def __init__(self, channels: int) -> None:
        self.scale = nnx.Param(jnp.ones(channels))
        self.shift = nnx.Param(jnp.zeros(channels))
        self.mean = nnx.BatchStat(jnp.zeros(channels))
        self.variance = nnx.BatchStat(jnp.ones(channels))

    def __call__(self, x: Array, board: BoardMask, train: bool) -> Array:
        """[B, H, W, C] -> Float32[B, H, W, C], the last to be rounded by the activation, in the same pass."""
        scale, shift = self.affine(self._learn(x, board) if train else None)
        return x.astype(jnp.float32) * scale + shift

    def affine(self, moments: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
        """Float32[C] each: by what it multiplies and what it then adds, by the running statistics or by `moments`."""
        mean, variance = moments or (self.mean[...], self.variance[...])
        scale = self.scale[...] * lax.rsqrt(variance + _EPSILON)
        return scale, self.shift[...] - mean * scale

    def _learn(self, x: Array, board: BoardMask) -> tuple[Array, Array]:
        moments = board.moments(x)
        for running, now in zip((self.mean, self.variance), moments, strict=True):
            running[...] += _NEW_SHARE * (lax.stop_gradient(now) - running[...])
        return moments


class Affine(nnx.Module):
    """A folded norm that follows the residual stream: no convolution can take it over."""

    def __init__(self, scale: Array, shift: Array) -> None:
        self.scale = nnx.Param(scale)
        self.shift = nnx.Param(shift)
        self.kernels = True  # may a GPU program of our own do this

    def __call__(self, x: Array, board: BoardMask, train: bool) -> Array:
        """[B, H, W, C] -> Float32[B, H, W, C]"""
        del board, train
        return x.astype(jnp.float32) * self.scale[...] + self.shift[...]


class Nothing(nnx.Module):
    """A folded norm that the layer before it has taken over."""

    def __call__(self, x: Array, board: BoardMask, train: bool) -> Array:
        """`x` itself."""
        del board, train
        return x


AnyNorm = Norm | Affine | Nothing


def without_statistics(norm: AnyNorm) -> Affine:
    """What a norm comes to when no layer before it can take it over."""
    assert isinstance(norm, Norm)
    return Affine(*norm.affine())


def taken_over(norm: AnyNorm) -> tuple[Array, Array]:
    """Float32[C] each: what a layer must multiply by and add, so that `Nothing` can stand for the norm after it."""
    assert isinstance(norm, Norm)
    return norm.affine()
