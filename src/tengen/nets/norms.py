"""Batch normalisation with running statistics, what remains of it in a folded network, and norms without statistics."""

from typing import Literal

import jax.numpy as jnp
from flax import nnx
from jax import lax
from jaxtyping import Array, Float32

from tengen.nets.board import BoardMask, Trunk
from tengen.nets.layers import filled

# As in KataGo.
EPSILON = 1e-4
RMS_EPSILON = 1e-6
# The running statistics average over about the last hundred batches.
_NEW_SHARE = 0.01
_ALL_NEW = 1.0


class Norm(nnx.Module):
    """Batch normalisation over the points on the board. Training uses the batch and updates the running statistics."""

    def __init__(self, channels: int) -> None:
        self.scale = nnx.Param(filled(1, channels))
        self.shift = nnx.Param(filled(0, channels))
        self.mean = nnx.BatchStat(filled(0, channels))
        self.variance = nnx.BatchStat(filled(1, channels))
        self.new_share = _NEW_SHARE

    def __call__(self, x: Trunk, board: BoardMask, train: bool) -> Trunk:
        """The result stays float32: the activation rounds it, in the same pass."""
        scale, shift = self.affine(self._learn(x, board) if train else None)
        return x.astype(jnp.float32) * scale + shift

    def affine(self, moments: "Affines | None" = None) -> "Affines":
        """The factor and the addend that the norm applies, from the running statistics or from `moments`."""
        mean, variance = moments or (self.mean[...], self.variance[...])
        scale = self.scale[...] * lax.rsqrt(variance + EPSILON)
        return scale, self.shift[...] - mean * scale

    def _learn(self, x: Trunk, board: BoardMask) -> "Affines":
        moments = board.moments(x)
        for running, now in zip((self.mean, self.variance), moments, strict=True):
            kept = (1 - self.new_share) * running[...]
            # Not `running[...] = `, which looks at the sharding of both: tracing a network would take twice as long.
            running.set_value(kept + self.new_share * lax.stop_gradient(now))
        return moments


class Affine(nnx.Module):
    """A folded norm that follows the residual stream: no convolution can absorb it."""

    def __init__(self, scale: Float32[Array, " channels"], shift: Float32[Array, " channels"]) -> None:
        self.scale = nnx.Param(scale)
        self.shift = nnx.Param(shift)
        self.kernels = True  # whether Tengen's GPU programs may be used

    def __call__(self, x: Trunk, board: BoardMask, train: bool) -> Trunk:
        return x.astype(jnp.float32) * self.scale[...] + self.shift[...]


class Nothing(nnx.Module):
    """A folded norm that the layer before it has absorbed."""

    def __call__(self, x: Trunk, board: BoardMask, train: bool) -> Trunk:
        return x


class RmsNorm(nnx.Module):
    """Divides by the root of the mean square: over the channels of each point, or over all points of the board."""

    def __init__(self, channels: int, per: Literal["point", "board"], shifted: bool) -> None:
        self.scale = nnx.Param(filled(1, channels))
        self.shift = nnx.data(nnx.Param(filled(0, channels)) if shifted else None)
        self.per = per

    def __call__(self, x: Trunk, board: BoardMask, train: bool) -> Trunk:
        wide = x.astype(jnp.float32)
        square = jnp.mean(jnp.square(wide), -1, keepdims=True)
        if self.per == "board":
            square = board.mean(square)[:, None, None]
        normed = wide * lax.rsqrt(square + RMS_EPSILON) * self.scale[...]
        return normed if self.shift is None else normed + self.shift[...]


AnyNorm = Norm | Affine | Nothing | RmsNorm
Affines = tuple[Float32[Array, " channels"], Float32[Array, " channels"]]


def renew_statistics(net: nnx.Module) -> None:
    """Let the next batch replace the running statistics of batch norms, Tengen's and flax's, not only add to them."""
    for _, module in nnx.iter_modules(net):
        if isinstance(module, Norm):
            module.new_share = _ALL_NEW
        elif isinstance(module, nnx.BatchNorm):
            module.momentum = 1 - _ALL_NEW


def without_statistics(norm: AnyNorm) -> Affine | RmsNorm:
    """A folded norm that no layer could absorb."""
    if isinstance(norm, RmsNorm):
        return norm
    assert isinstance(norm, Norm)
    return Affine(*norm.affine())


def taken_over(norm: AnyNorm) -> Affines:
    """The factor and the addend that the layer before the norm must absorb, so that `Nothing` can replace the norm."""
    assert isinstance(norm, Norm)
    return norm.affine()
