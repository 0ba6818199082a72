"""Attention between the points of a board, as in KataGo's transformers: normed before, and added to the stream."""

import math

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Float32

from tengen.nets.board import BoardMask, Trunk
from tengen.nets.layers import PointDense, activate
from tengen.nets.norms import RmsNorm
from tengen.nets.specs import TowerAttention

Angles = Float32[Array, "kv_heads points pairs"]


class PointAttention(nnx.Module):
    """Every point looks at all others. Keys and queries are turned by angles that depend on where the point is."""

    def __init__(self, sizes: TowerAttention, channels: int, gain: float, rngs: nnx.Rngs) -> None:
        self.norm = RmsNorm(channels, per="point", shifted=False)
        self.query = PointDense(channels, sizes.heads * sizes.key_width, rngs)
        self.key = PointDense(channels, sizes.kv_heads * sizes.key_width, rngs)
        self.value = PointDense(channels, sizes.kv_heads * sizes.value_width, rngs)
        self.out = PointDense(sizes.heads * sizes.value_width, channels, rngs, gain=gain)
        learned = sizes.turning == "learned"
        self.frequencies = nnx.data(nnx.Param(_frequencies(sizes)) if learned else None)
        self.sizes = sizes

    def __call__(self, x: Trunk, board: BoardMask) -> Trunk:
        batch, height, width, _ = x.shape
        seen = self.norm(x, board, train=False).astype(x.dtype).reshape(batch, height * width, -1)
        sizes = self.sizes
        key, value = (layer(seen).reshape(batch, -1, sizes.kv_heads, 1, size) for layer, size in
                      ((self.key, sizes.key_width), (self.value, sizes.value_width)))  # fmt: skip
        query = self.query(seen).reshape(batch, height * width, sizes.kv_heads, -1, sizes.key_width)
        if sizes.turning != "none":
            frequencies = _frequencies(sizes) if self.frequencies is None else self.frequencies[...]
            angles = _angles(frequencies, height, width)
            query, key = _turned(query, angles), _turned(key, angles)
        logits = jnp.einsum("bqkgd,bskd->bkgqs", query, key[:, :, :, 0]).astype(jnp.float32)
        logits /= math.sqrt(sizes.key_width)
        if board.on is not None:
            logits = jnp.where(board.on.reshape(batch, 1, 1, 1, -1), logits, -jnp.inf)
        shares = jax.nn.softmax(logits, -1).astype(x.dtype)
        found = jnp.einsum("bkgqs,bskd->bqkgd", shares, value[:, :, :, 0])
        return self.out(found.reshape(batch, height, width, -1))


class GatedDense(nnx.Module):
    """Two dense layers for every point; the first is gated (SwiGLU)."""

    def __init__(self, width: int, channels: int, gain: float, rngs: nnx.Rngs) -> None:
        self.norm = RmsNorm(channels, per="point", shifted=False)
        self.first = PointDense(channels, width, rngs)
        self.gate = PointDense(channels, width, rngs)
        self.last = PointDense(width, channels, rngs, gain=gain)

    def __call__(self, x: Trunk, board: BoardMask) -> Trunk:
        seen = self.norm(x, board, train=False).astype(x.dtype)
        return self.last(activate(self.first(seen), "silu") * self.gate(seen))


class AttentionBlock(nnx.Module):
    """Attention, then dense layers, each of which adds to the stream."""

    def __init__(self, sizes: TowerAttention, channels: int, gain: float, rngs: nnx.Rngs) -> None:
        gain *= 2**-0.5  # two parts add
        self.attention = PointAttention(sizes, channels, gain, rngs)
        self.dense = GatedDense(sizes.dense_width, channels, gain, rngs)

    def __call__(self, x: Trunk, board: BoardMask, train: bool) -> Trunk:
        x = x + self.attention(x, board)
        return x + self.dense(x, board)

    def fold(self) -> None:
        """Nothing to do: the norms depend on the position."""


def _frequencies(sizes: TowerAttention) -> Float32[Array, "kv_heads pairs 2"]:
    """By how much a step along a row and a step along a column turn each pair of channels, if that is not learned.

    The first half of the pairs turns along columns, the other along rows.
    """
    pairs = sizes.key_width // 2
    half = pairs // 2
    number = jnp.arange(pairs)
    along_rows = number >= half
    turn = sizes.base ** (-2.0 * jnp.where(along_rows, number - half, number) / pairs)
    both = jnp.stack([jnp.where(along_rows, turn, 0), jnp.where(along_rows, 0, turn)], -1)
    return jnp.broadcast_to(both, (sizes.kv_heads, pairs, 2))


def _angles(frequencies: Float32[Array, "kv_heads pairs 2"], height: int, width: int) -> Angles:
    y, x = jnp.divmod(jnp.arange(height * width), width)
    return (x[:, None] * frequencies[:, None, :, 0] + y[:, None] * frequencies[:, None, :, 1]).astype(jnp.float32)


def _turned(x: Float[Array, "batch points kv_heads group width"], angles: Angles) -> Float[Array, "..."]:
    """Each pair of neighbouring channels, turned by the angle of its point."""
    angles = angles.swapaxes(0, 1)[:, :, None]
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    first, second = x[..., 0::2].astype(jnp.float32), x[..., 1::2].astype(jnp.float32)
    both = jnp.stack([first * cos - second * sin, first * sin + second * cos], -1)
    return both.reshape(x.shape).astype(x.dtype)
