"""Networks as Lc0 has them: blocks that end in an activation, and its heads, for chess.

Names of the layers are those of Lc0's files, as far as these have names.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Float32, Int

from tengen.games import chess_lc0
from tengen.nets.blocks import SqueezeExcite
from tengen.nets.board import BoardMask, Trunk
from tengen.nets.heads import OUTPUT_GAIN
from tengen.nets.layers import Conv, Dense, PointDense, activate
from tengen.nets.network import Network, Planes, Scalars
from tengen.nets.norms import AnyNorm, Norm, Nothing, taken_over
from tengen.nets.outputs import Outputs
from tengen.nets.specs import Activation, AnyActivation, Dtype, Lc0Activation, Lc0Encoders, Lc0Smolgen, Lc0Tower, Spec

INPUTS: Int[np.ndarray, "112"] = np.array([111, *range(111)])
"""Lc0's number of each input channel: Tengen's planes, the count of plies, and a plane that is always 0."""
MOVES = 20.0
"""The unit of the last layer for the moves left, so that its numbers stay small."""
_PIECES = 3  # promotions with a letter: queen, rook, bishop
SQUARES = 64


def lc0_planes(planes: Planes, scalars: Scalars, dtype: Dtype) -> Float[Array, "batch 8 8 112"]:
    """All inputs as planes, in the order of INPUTS."""
    counts = jnp.broadcast_to(scalars[:, None, None], (*planes.shape[:-1], scalars.shape[-1]))
    x = jnp.concatenate([planes.astype(dtype), counts.astype(dtype)], -1)
    return jnp.pad(x, ((0, 0), (0, 0), (0, 0), (0, len(INPUTS) - x.shape[-1])))


def lc0_outputs(policy: Array, value: Array, left: Array | None) -> Outputs:
    return Outputs(policy, value, moves_left=None if left is None else MOVES * jax.nn.relu(left[:, 0]))


class NormedConv(nnx.Module):
    """Convolution and norm, and an activation unless there is none."""

    norm: AnyNorm

    def __init__(
        self, side: int, inputs: int, outputs: int, activation: Activation | None, rngs: nnx.Rngs, gain: float = 1.0
    ) -> None:
        self.conv = Conv(side, inputs, outputs, rngs)
        self.norm = Norm(outputs)
        self.norm.scale[...] = jnp.full(outputs, gain)
        self.activation: Activation | None = activation

    def __call__(self, x: Trunk, board: BoardMask, train: bool) -> Float[Array, "batch height width outputs"]:
        normed = self.norm(self.conv(x), board, train)
        return (normed if self.activation is None else activate(normed, self.activation)).astype(x.dtype)

    def fold(self) -> None:
        self.conv.absorb(*taken_over(self.norm))
        self.norm = Nothing()


class Lc0Block(nnx.Module):
    """activation(x + two convolutions of x), perhaps with squeeze-and-excitation."""

    def __init__(self, tower: Lc0Tower, activation: Activation, rngs: nnx.Rngs) -> None:
        channels = tower.channels
        self.conv1 = NormedConv(3, channels, channels, activation, rngs)
        self.conv2 = NormedConv(3, channels, channels, None, rngs, gain=tower.blocks**-0.5)
        units = tower.excite_units
        self.se = nnx.data(None if units is None else SqueezeExcite(channels, units, activation, rngs))
        self.activation: Activation = activation

    def __call__(self, x: Trunk, board: BoardMask, train: bool) -> Trunk:
        added = self.conv2(self.conv1(x, board, train), board, train)
        return activate(x + (added if self.se is None else self.se(added, board)), self.activation)


class FlatHead(nnx.Module):
    """A convolution to few channels, then dense layers that read all squares."""

    def __init__(self, channels: int, inner: int, widths: tuple[int, ...], activation: Activation, rngs: nnx.Rngs):
        sizes = (SQUARES * inner, *widths)
        self.conv = NormedConv(1, channels, inner, activation, rngs)
        last = len(widths)
        self.layers = nnx.List(
            Dense(sizes[n - 1], sizes[n], rngs, bias=True, gain=OUTPUT_GAIN if n == last else 1.0)
            for n in range(1, last + 1)
        )
        self.activation: Activation = activation

    def __call__(self, x: Trunk, board: BoardMask, train: bool) -> Float32[Array, "batch outputs"]:
        found = self.conv(x, board, train)
        # Channel by channel, as in Lc0.
        found = found.reshape(len(x), SQUARES, -1).swapaxes(1, 2).reshape(len(x), -1)
        for layer in self.layers[:-1]:
            found = activate(layer(found), self.activation)
        return self.layers[-1](found).astype(jnp.float32)


class ConvolutionPolicy(nnx.Module):
    """A convolution whose channels are the ways of leaving a square."""

    def __init__(self, tower: Lc0Tower, activation: Activation, rngs: nnx.Rngs) -> None:
        self.conv = NormedConv(3, tower.channels, tower.policy_channels, activation, rngs)
        self.moves = Conv(3, tower.policy_channels, chess_lc0.CONVOLUTION_PLANES, rngs, gain=OUTPUT_GAIN)
        self.moves.bias = nnx.Param(jnp.zeros(chess_lc0.CONVOLUTION_PLANES))

    def __call__(self, x: Trunk, board: BoardMask, train: bool) -> Float32[Array, "batch 1858"]:
        found = self.moves(self.conv(x, board, train)).reshape(len(x), SQUARES, -1).swapaxes(1, 2)
        return found.reshape(len(x), -1)[:, chess_lc0.CONVOLUTION].astype(jnp.float32)


class AttentionPolicy(nnx.Module):
    """Squares that are left ask squares that are reached. Promotions add a number for the file that is reached."""

    def __init__(self, channels: int, inner: int, width: int, activation: AnyActivation, rngs: nnx.Rngs) -> None:
        self.embedding = PointDense(channels, inner, rngs, bias=True)
        self.query = PointDense(inner, width, rngs, bias=True)
        self.key = PointDense(inner, width, rngs, bias=True, gain=OUTPUT_GAIN)
        self.promotion = Dense(width, _PIECES + 1, rngs, gain=OUTPUT_GAIN)
        self.activation: AnyActivation = activation

    def __call__(
        self, x: Float[Array, "batch *squares channels"], board: BoardMask | None = None, train: bool = False
    ) -> Float32[Array, "batch 1858"]:
        squares = activate(self.embedding(x.reshape(len(x), SQUARES, -1)), self.activation)
        query, key = self.query(squares), self.key(squares)
        logits = jnp.einsum("bqd,bkd->bqk", query, key).astype(jnp.float32) / math.sqrt(query.shape[-1])
        # [to-file, piece]: a number for each piece, and one for all of them, the knight's.
        offsets = self.promotion(key[:, SQUARES - 8 :]).astype(jnp.float32)
        offsets = offsets[..., :_PIECES] + offsets[..., _PIECES:]
        steps = logits[:, SQUARES - 16 : SQUARES - 8, SQUARES - 8 :]  # from the seventh rank to the eighth
        promotions = steps[..., None] + offsets[:, None]
        every = jnp.concatenate([logits.reshape(len(x), -1), promotions.reshape(len(x), -1)], -1)
        return every[:, chess_lc0.ATTENTION]


class Lc0Network(Network):
    """A network of Lc0: a convolution, blocks, and heads for the policy, for win, draw and loss, and for moves left."""

    def __init__(self, spec: Spec, tower: Lc0Tower, rngs: nnx.Rngs, dtype: Dtype) -> None:
        super().__init__(spec, dtype, full_board=True)
        channels, activation = tower.channels, spec.activation
        self.stem = NormedConv(3, len(INPUTS), channels, activation, rngs)
        self.blocks = nnx.List([Lc0Block(tower, activation, rngs) for _ in range(tower.blocks)])
        self.policy = _policy(tower, activation, rngs)
        self.value = FlatHead(channels, tower.value_channels, (tower.value_width, 3), activation, rngs)
        left = None
        if "moves_left" in spec.heads:
            left = FlatHead(channels, tower.moves_channels, (tower.moves_width, 1), activation, rngs)
            left.layers[-1].bias = nnx.Param(jnp.ones(1))  # above 0, where it has a gradient
        self.moves_left = nnx.data(left)

    def _look(self, planes: Planes, scalars: Scalars, train: bool) -> Outputs:
        board = BoardMask.of(planes, full=True)
        # Lc0's planes are convolved as a whole, also that of the count: its edges see less of it than the middle.
        x = self.stem(lc0_planes(planes, scalars, self.dtype), board, train)
        for block in self.blocks:
            x = block(x, board, train)
        left = None if self.moves_left is None else self.moves_left(x, board, train)
        return lc0_outputs(self.policy(x, board, train), self.value(x, board, train), left)

    def fold_norms(self) -> None:
        for _, module in list(nnx.iter_modules(self)):
            if isinstance(module, NormedConv):
                module.fold()


def _policy(tower: Lc0Tower, activation: Activation, rngs: nnx.Rngs) -> FlatHead | ConvolutionPolicy | AttentionPolicy:
    if tower.policy == "dense":
        return FlatHead(tower.channels, tower.policy_channels, (chess_lc0.NUM_MOVES,), activation, rngs)
    if tower.policy == "convolution":
        return ConvolutionPolicy(tower, activation, rngs)
    return AttentionPolicy(tower.channels, tower.policy_channels, tower.key_width, "selu", rngs)


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
    """A network of Lc0 with a body of encoder layers (transformers), and the heads of `Lc0Network`.

    Squares are tokens. Layers are normed after they are added ("post-norm"), and what is added is scaled (DeepNorm).
    """

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
