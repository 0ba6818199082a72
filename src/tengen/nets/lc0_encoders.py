"""Networks of Lc0 whose body is made of encoder layers (transformers), for chess.

Squares are tokens. Layers are normed after they are added ("post-norm"), and what is added is scaled as in DeepNorm.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Float32

from tengen.nets.heads import OUTPUT_GAIN
from tengen.nets.layers import Dense, PointDense, activate
from tengen.nets.lc0 import INPUTS, SQUARES, AttentionPolicy, lc0_outputs, lc0_planes
from tengen.nets.network import Network, Planes, Scalars
from tengen.nets.outputs import Outputs
from tengen.nets.specs import Dtype, Lc0Activation, Lc0Encoders, Lc0Smolgen, Spec

PIECES = slice(1, 13)
"""The channels with the pieces of the current position."""
Tokens = Float[Array, "batch 64 channels"]


def reachable() -> np.ndarray:
    """Float32[64, 64]: -1 for a square itself, 1 for the squares that a queen or a knight reaches from it."""
    rank, file = np.divmod(np.arange(SQUARES), 8)
    up, across = (np.abs(axis[:, None] - axis) for axis in (rank, file))
    seen = (up == 0) | (across == 0) | (up == across) | (up * across == 2)
    return np.where(np.eye(SQUARES, dtype=bool), -1, seen).astype(np.float32)


class LayerNorm(nnx.Module):
    """Norms the channels of each position by themselves."""

    def __init__(self, channels: int, epsilon: float) -> None:
        self.scale = nnx.Param(jnp.ones(channels))
        self.shift = nnx.Param(jnp.zeros(channels))
        self.epsilon = epsilon

    def __call__(self, x: Float[Array, "*shape channels"]) -> Float[Array, "*shape channels"]:
        wide = x.astype(jnp.float32)
        centred = wide - wide.mean(-1, keepdims=True)
        normed = centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + self.epsilon)
        return (normed * self.scale[...] + self.shift[...]).astype(x.dtype)


class FeedForward(nnx.Module):
    """Two dense layers for every square."""

    def __init__(self, channels: int, width: int, activation: Lc0Activation, gain: float, rngs: nnx.Rngs) -> None:
        self.dense1 = PointDense(channels, width, rngs, bias=True, gain=gain)
        self.dense2 = PointDense(width, channels, rngs, bias=True, gain=gain)
        self.activation: Lc0Activation = activation

    def __call__(self, x: Tokens) -> Tokens:
        return self.dense2(activate(self.dense1(x), self.activation))


class Smolgen(nnx.Module):
    """A few numbers per head, computed from the whole position, for what is added to the logits of the attention."""

    def __init__(self, body: Lc0Encoders, sizes: Lc0Smolgen, rngs: nnx.Rngs) -> None:
        self.compress = PointDense(body.channels, sizes.channels, rngs)
        self.dense1 = Dense(SQUARES * sizes.channels, sizes.width, rngs, bias=True)
        self.norm1 = LayerNorm(sizes.width, 1e-3)
        self.dense2 = Dense(sizes.width, body.heads * sizes.outputs, rngs, bias=True)
        self.norm2 = LayerNorm(body.heads * sizes.outputs, 1e-3)
        self.heads = body.heads
        self.activation: Lc0Activation = sizes.activation

    def __call__(self, x: Tokens) -> Float[Array, "batch heads outputs"]:
        found = self.compress(x).reshape(len(x), -1)
        found = self.norm1(activate(self.dense1(found), self.activation))
        found = self.norm2(activate(self.dense2(found), self.activation))
        return found.reshape(len(x), self.heads, -1)


class Lc0Encoder(nnx.Module):
    """Attention between the squares, then two dense layers for each of them."""

    def __init__(self, body: Lc0Encoders, rngs: nnx.Rngs) -> None:
        channels, gain = body.channels, (8 * body.layers) ** -0.25
        self.query = PointDense(channels, body.width, rngs, bias=True)
        self.key = PointDense(channels, body.width, rngs, bias=True)
        self.value = PointDense(channels, body.width, rngs, bias=True, gain=gain)
        self.out = PointDense(body.width, channels, rngs, bias=True, gain=gain)
        self.smolgen = nnx.data(None if body.smolgen is None else Smolgen(body, body.smolgen, rngs))
        self.norm1 = LayerNorm(channels, body.epsilon)
        self.ffn = FeedForward(channels, body.ffn_width, body.ffn_activation, gain, rngs)
        self.norm2 = LayerNorm(channels, body.epsilon)
        self.heads, self.share = body.heads, body.share

    def __call__(self, x: Tokens, spread: Dense | None) -> Tokens:
        """`spread` is the layer that all encoders share, from numbers of smolgen to those of all pairs of squares."""
        x = self.norm1(x + self.share * self._attention(x, spread))
        return self.norm2(x + self.share * self.ffn(x))

    def _attention(self, x: Tokens, spread: Dense | None) -> Tokens:
        layers = (self.query, self.key, self.value)
        query, key, value = (layer(x).reshape(len(x), SQUARES, self.heads, -1) for layer in layers)
        logits = jnp.einsum("bqhd,bkhd->bhqk", query, key).astype(jnp.float32) / math.sqrt(query.shape[-1])
        if self.smolgen is not None and spread is not None:
            logits += spread(self.smolgen(x)).reshape(logits.shape).astype(jnp.float32)
        shares = jax.nn.softmax(logits, -1).astype(x.dtype)
        return self.out(jnp.einsum("bhqk,bkhd->bqhd", shares, value).reshape(len(x), SQUARES, -1))


class Embedding(nnx.Module):
    """From planes to the channels of each square, with what a square cannot see by itself."""

    def __init__(self, body: Lc0Encoders, activation: Lc0Activation, rngs: nnx.Rngs) -> None:
        inputs, channels, dense, around = len(INPUTS), body.channels, body.embedding == "dense", body.around_width
        count = PIECES.stop - PIECES.start
        self.around = nnx.data(Dense(SQUARES * count, SQUARES * around, rngs, bias=True) if dense else None)
        self.dense = PointDense(inputs + (around if dense else SQUARES), channels, rngs, bias=True)
        self.norm = nnx.data(LayerNorm(channels, body.epsilon) if dense else None)
        gates = body.gates
        self.factor = nnx.data(nnx.Param(jnp.ones((SQUARES, channels))) if gates else None)
        self.addend = nnx.data(nnx.Param(jnp.zeros((SQUARES, channels))) if gates else None)
        width, gain = body.embedding_ffn_width, (8 * body.layers) ** -0.25
        self.ffn = nnx.data(FeedForward(channels, width, body.ffn_activation, gain, rngs) if dense else None)
        self.ffn_norm = nnx.data(LayerNorm(channels, body.epsilon) if dense else None)
        self.activation: Lc0Activation = activation
        self.share = body.share

    def __call__(self, x: Float[Array, "batch 64 112"]) -> Tokens:
        if self.around is not None:
            more = self.around(x[..., PIECES].reshape(len(x), -1)).reshape(len(x), SQUARES, -1)
        else:
            more = jnp.broadcast_to(jnp.asarray(reachable(), x.dtype), (len(x), SQUARES, SQUARES))
        x = activate(self.dense(jnp.concatenate([x, more], -1)), self.activation)
        x = x if self.norm is None else self.norm(x)
        if self.factor is not None and self.addend is not None:
            x = x * self.factor[...].astype(x.dtype) + self.addend[...].astype(x.dtype)
        return x if self.ffn is None or self.ffn_norm is None else self.ffn_norm(x + self.share * self.ffn(x))


class SquareHead(nnx.Module):
    """A dense layer for every square, then two that read all squares."""

    def __init__(
        self, channels: int, inner: int, width: int, outputs: int, activation: Lc0Activation, rngs: nnx.Rngs
    ) -> None:
        self.squares = PointDense(channels, inner, rngs, bias=True)
        self.hidden = Dense(SQUARES * inner, width, rngs, bias=True)
        self.last = Dense(width, outputs, rngs, bias=True, gain=OUTPUT_GAIN)
        self.activation: Lc0Activation = activation

    def __call__(self, x: Tokens) -> Float32[Array, "batch outputs"]:
        found = activate(self.squares(x), self.activation).reshape(len(x), -1)
        return self.last(activate(self.hidden(found), self.activation)).astype(jnp.float32)


class Lc0EncoderNetwork(Network):
    """A network of Lc0 with a body of encoder layers, and the heads of `Lc0Network`."""

    def __init__(self, spec: Spec, body: Lc0Encoders, rngs: nnx.Rngs, dtype: Dtype) -> None:
        super().__init__(spec, dtype, full_board=True)
        channels, activation, smolgen = body.channels, spec.activation, body.smolgen
        self.embedding = Embedding(body, activation, rngs)
        self.encoders = nnx.List([Lc0Encoder(body, rngs) for _ in range(body.layers)])
        self.spread = nnx.data(None if smolgen is None else Dense(smolgen.outputs, SQUARES**2, rngs, gain=OUTPUT_GAIN))
        if self.spread is not None:
            self.spread.times = body.layers * body.heads
        self.policy = AttentionPolicy(channels, body.policy_channels, body.key_width, activation, rngs)
        self.value = SquareHead(channels, body.value_channels, body.value_width, 3, activation, rngs)
        left = None
        if "moves_left" in spec.heads:
            left = SquareHead(channels, body.moves_channels, body.moves_width, 1, activation, rngs)
            left.last.bias = nnx.Param(jnp.ones(1))  # above 0, where it has a gradient
        self.moves_left = nnx.data(left)

    def _look(self, planes: Planes, scalars: Scalars, train: bool) -> Outputs:
        x = self.embedding(lc0_planes(planes, scalars, self.dtype).reshape(len(planes), SQUARES, -1))
        for encoder in self.encoders:
            x = encoder(x, self.spread)
        return lc0_outputs(self.policy(x), self.value(x), self.moves_left and self.moves_left(x))

    def fold_norms(self) -> None:
        """Nothing to do: the norms depend on the position."""
