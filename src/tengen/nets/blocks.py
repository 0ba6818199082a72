"""The blocks of a tower. All are residual and pre-activated: x + branch(x), a branch starting with norm and activation.

Every module has `fold`, which removes its norms, in place. The layer before a norm absorbs it, except after the
residual stream: there a scale and a shift per channel remain, in the same pass as the activation.
"""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax
from jaxtyping import Array, Float, Float32

from tengen.nets import gpu
from tengen.nets.board import BoardMask, Trunk
from tengen.nets.layers import Conv, Dense, PointDense, activate
from tengen.nets.norms import Affine, Affines, AnyNorm, Norm, Nothing, RmsNorm, taken_over, without_statistics
from tengen.nets.specs import Activation, Tower, TowerAttention

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


class BlockStep(nnx.Module):
    norm: AnyNorm

    def __init__(self, conv: Conv, activation: Activation) -> None:
        self.norm = Norm(conv.kernel.shape[2] * conv.groups)
        self.conv = conv
        self.activation: Activation = activation

    def __call__(self, x: Trunk, board: BoardMask, train: bool) -> Float[Array, "batch height width outputs"]:
        return self.conv(shaped(x, self.norm, self.activation, board, train))


def shaped(x: Trunk, norm: AnyNorm, activation: Activation, board: BoardMask, train: bool) -> Trunk:
    """Norm, activation and mask, in one pass and rounded once."""

    def plain(x: Array) -> Array:
        return board.hide(activate(norm(x, board, train), activation).astype(x.dtype))

    if isinstance(norm, Affine) and norm.kernels and board.on is None and gpu.suits_affine(x):
        weights = norm.scale[...], norm.shift[...]
        kernel = partial(gpu.affine, activation=activation)
        return lax.platform_dependent(x, cuda=lambda x: kernel(x, *weights), default=plain)
    return plain(x)


class BlockChain(nnx.Module):
    """Steps one after the other: the branch of an ordinary block."""

    def __init__(self, convs: list[Conv], activation: Activation) -> None:
        self.steps = nnx.List([BlockStep(conv, activation) for conv in convs])

    def __call__(self, x: Trunk, board: BoardMask, train: bool) -> Trunk:
        for step in self.steps:
            x = step(x, board, train)
        return x

    def fold(self) -> None:
        steps = list(self.steps)
        steps[0].norm = without_statistics(steps[0].norm)
        for before, step in itertools.pairwise(steps):
            before.conv.absorb(*taken_over(step.norm))
            step.norm = Nothing()


class PoolBias(nnx.Module):
    """Global pooling: some channels, pooled over the board, add a bias to each of the others."""

    pooled_norm: AnyNorm
    norm: AnyNorm

    def __init__(self, regular: int, pooled: int, activation: Activation, rngs: nnx.Rngs) -> None:
        self.pooled_norm = Norm(pooled)
        self.dense = Dense(3 * pooled, regular, rngs)
        self.norm = Norm(regular)
        self.regular = regular
        self.activation: Activation = activation
        self.kernels = False  # whether Tengen's GPU programs may be used, once folded

    def __call__(
        self, x: Trunk, before: Conv, board: BoardMask, train: bool
    ) -> tuple[Float[Array, "batch height width {self.regular}"], Float[Array, "batch pool"]]:
        """The regular channels, biased, normed and activated, and the pool of the channels after them.

        `x` is the output of the convolution `before` without its bias; channels beyond these two groups are ignored.
        """
        dense = self.dense.kernel[...]
        if self.kernels and board.on is None and gpu.suits_pool(x, dense):
            assert isinstance(board.side, float)
            kernel = partial(gpu.pool_bias, side=board.side, activation=self.activation)
            plain = partial(self._plain, before=before, board=board, train=train)
            shift = None if before.bias is None else before.bias[...]
            return lax.platform_dependent(x, cuda=lambda x: kernel(x, shift, dense), default=plain)
        return self._plain(x, before, board, train)

    def _plain(self, x: Trunk, before: Conv, board: BoardMask, train: bool) -> tuple[Array, Array]:
        """`__call__` without GPU programs."""
        x = before.biased(x)
        end = self.regular + self.dense.kernel.shape[0] // 3
        regular, pooled = x[..., : self.regular], x[..., self.regular : end]
        pool = board.pool(shaped(pooled, self.pooled_norm, self.activation, board, train))
        biased = regular + self.dense(pool)[:, None, None]
        return shaped(biased, self.norm, self.activation, board, train), pool

    def fold(self) -> Affines:
        """The factor and the addend for the outputs of the convolution before."""
        (scale, shift), (pooled_scale, pooled_shift) = taken_over(self.norm), taken_over(self.pooled_norm)
        self.dense.absorb(scale, None)
        self.norm, self.pooled_norm = Nothing(), Nothing()
        return jnp.concatenate([scale, pooled_scale]), jnp.concatenate([shift, pooled_shift])


class PoolChain(nnx.Module):
    """KataGo's branch with global pooling. One convolution gives both the regular and the pooled channels."""

    def __init__(self, first: Conv, second: Conv, activation: Activation, rngs: nnx.Rngs) -> None:
        outputs, regular = first.kernel.shape[3], second.kernel.shape[2]
        self.first = BlockStep(first, activation)
        self.pool = PoolBias(regular, outputs - regular, activation, rngs)
        self.second = second

    def __call__(self, x: Trunk, board: BoardMask, train: bool) -> Trunk:
        conv = self.first.conv
        x = conv.unbiased(shaped(x, self.first.norm, self.first.activation, board, train))
        biased, _ = self.pool(x, conv, board, train)
        return self.second(biased)

    def fold(self) -> None:
        self.first.norm = without_statistics(self.first.norm)
        self.first.conv.absorb(*self.pool.fold())


class NestedBlock(nnx.Module):
    """A nested bottleneck: down to fewer channels, whole residual blocks there, and up again."""

    def __init__(self, down: Conv, inner: "list[AnyBlock]", up: Conv, activation: Activation) -> None:
        self.down = BlockStep(down, activation)
        self.inner = nnx.List(inner)
        self.up = BlockStep(up, activation)

    def __call__(self, x: Trunk, board: BoardMask, train: bool) -> Trunk:
        x = self.down(x, board, train)
        for block in self.inner:
            x = block(x, board, train)
        return self.up(x, board, train)

    def fold(self) -> None:
        # Inside, all norms follow the residual stream, even the first: its convolution also feeds the sum.
        self.down.norm = without_statistics(self.down.norm)
        self.up.norm = without_statistics(self.up.norm)
        for block in self.inner:
            block.fold()


class SqueezeExcite(nnx.Module):
    """Squeeze-and-excitation: the mean of all channels over the board scales each of them and adds to it."""

    def __init__(self, channels: int, hidden: int, activation: Activation, rngs: nnx.Rngs) -> None:
        self.squeeze = Dense(channels, hidden, rngs, bias=True)
        self.expand = Dense(hidden, 2 * channels, rngs, bias=True)
        self.activation: Activation = activation

    def __call__(self, x: Trunk, board: BoardMask) -> Trunk:
        hidden = activate(self.squeeze(board.mean(x).astype(x.dtype)), self.activation)
        scale, shift = jnp.split(self.expand(hidden)[:, None, None], 2, -1)
        return x * jax.nn.sigmoid(scale) + shift


class Residual(nnx.Module):
    """x + branch(x), optionally with squeeze-and-excitation."""

    def __init__(self, branch: "BlockChain | PoolChain | NestedBlock", excite: SqueezeExcite | None = None) -> None:
        self.branch = branch
        self.excite = excite

    def __call__(self, x: Trunk, board: BoardMask, train: bool) -> Trunk:
        added = self.branch(x, board, train)
        return x + (added if self.excite is None else self.excite(added, board))

    def fold(self) -> None:
        self.branch.fold()


Branch = BlockChain | PoolChain
AnyBlock = Residual | AttentionBlock


def block(tower: Tower, number: int, activation: Activation, rngs: nnx.Rngs) -> AnyBlock:
    """Block `number` (from 1) of the tower."""
    pools = number in tower.pool_blocks
    # Each block adds to the stream: with this gain the size at the top does not depend on the number of blocks.
    gain = tower.blocks**-0.5
    attention = tower.attention if tower.attention is not None and number in tower.attention.blocks else None
    if tower.kind == "nested":
        channels, mid = tower.channels, tower.mid_channels
        inside = tower.inner_blocks**-0.5
        inner: list[AnyBlock] = [
            Residual(_branch(tower, mid, pools and n == 0, inside, activation, rngs))
            if attention is None
            else AttentionBlock(attention, mid, inside, rngs)
            for n in range(tower.inner_blocks)
        ]
        branch = NestedBlock(Conv(1, channels, mid, rngs), inner, Conv(1, mid, channels, rngs, gain=gain), activation)
    elif attention is not None:
        return AttentionBlock(attention, tower.channels, gain, rngs)
    else:
        branch = _branch(tower, tower.channels, pools, gain, activation, rngs)
    if tower.excite_ratio is None:
        return Residual(branch)
    return Residual(branch, SqueezeExcite(tower.channels, tower.channels // tower.excite_ratio, activation, rngs))


def _branch(tower: Tower, channels: int, pools: bool, gain: float, activation: Activation, rngs: nnx.Rngs) -> Branch:
    mid, groups = tower.mid_channels, tower.groups
    if pools:
        second = Conv(3, mid - tower.pool_channels, channels, rngs, gain=gain)
        return PoolChain(Conv(3, channels, mid, rngs), second, activation, rngs)
    if groups > 1:
        between = [Conv(1, channels, mid, rngs), Conv(3, mid, mid, rngs, groups=groups)]
        return BlockChain([*between, Conv(1, mid, channels, rngs, gain=gain)], activation)
    return BlockChain([Conv(3, channels, mid, rngs), Conv(3, mid, channels, rngs, gain=gain)], activation)
