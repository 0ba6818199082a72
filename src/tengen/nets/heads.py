"""The heads of a tower: from the trunk to the outputs of the network.

All heads read the same 1x1 convolution, the neck: channels for the policy, channels that it pools, then the value's.
"""

from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax
from jaxtyping import Array, Float, Float32

from tengen.games.core import Game
from tengen.nets import fitting, gpu
from tengen.nets.blocks import PoolBias, shaped
from tengen.nets.board import BoardMask, Trunk
from tengen.nets.layers import Conv, Dense, activate, on_device, scaled
from tengen.nets.norms import AnyNorm, Norm, Nothing, RmsNorm, taken_over, without_statistics
from tengen.nets.outputs import OFF_BOARD, Outputs
from tengen.nets.specs import Activation, Spec, Tower

Policies = Float32[Array, "batch kinds actions"]
# Small, so that a new network is not sure of anything.
OUTPUT_GAIN = 0.3
# The first logit of a draw in games whose draws are learned as half a win: training never raises it.
_NO_DRAW = -15.0
# The units of the last layer, so that its numbers stay small.
_POINTS = 20.0
_MOVES = 20.0


def kinds(spec: Spec, game: Game) -> tuple[str, ...]:
    """What there is one number per action for: the policy, perhaps the opponent's reply, and targets of the game."""
    reply = ("opponent_policy",) if "opponent_policy" in spec.heads else ()
    return ("policy", *reply, *(target.name for target in fitting.extra_targets(spec, game, "action")))


class PolicyColumns(Dense):
    """Outputs for each column of the board: the same layer reads every column from top to bottom."""

    def __call__(self, x: Trunk) -> Float[Array, "batch width outputs"]:
        batch, height, width, channels = x.shape
        return super().__call__(x.swapaxes(1, 2).reshape(batch, width, height * channels))


class PolicyHead(nnx.Module):
    """Logits of one or two policies over all actions, laid out on the board by `fitting.Layout`."""

    def __init__(self, spec: Spec, tower: Tower, game: Game, rngs: nnx.Rngs) -> None:
        channels, kinds_ = tower.policy_channels, len(kinds(spec, game))
        height, width, _ = game.planes_shape
        self.pool = PoolBias(channels, channels, spec.activation, rngs)
        self.layout = layout = fitting.layout(game)
        self.kinds = kinds_
        self.points = self.extra = self.extra_hidden = self.columns = self.dense = nnx.data(None)
        self.activation: Activation = spec.activation
        if layout.kind == "points":
            self.points = Conv(1, channels, kinds_ * layout.per_point, rngs, gain=OUTPUT_GAIN)
            if layout.extra:
                units = tower.pass_units
                if units is not None:
                    self.extra_hidden = Dense(3 * channels, units, rngs, bias=True)
                self.extra = Dense(units or 3 * channels, kinds_ * layout.extra, rngs, gain=OUTPUT_GAIN)
        elif layout.kind == "columns":
            self.columns = PolicyColumns(height * channels, kinds_, rngs, gain=OUTPUT_GAIN)
        else:
            inputs, outputs = (height * width + 3) * channels, kinds_ * game.num_actions
            self.dense = Dense(inputs, outputs, rngs, bias=True, gain=OUTPUT_GAIN)

    def __call__(self, x: Trunk, neck: Conv, board: BoardMask, train: bool) -> Policies:
        """`x` is the output of the neck without its bias."""
        x, pool = self.pool(x, neck, board, train)
        if self.points is not None:
            return self._by_point(self.points(x).astype(jnp.float32), pool, board)
        if self.columns is not None:
            return self.columns(x).swapaxes(1, 2).astype(jnp.float32)
        assert self.dense is not None
        everything = jnp.concatenate([x.reshape(len(x), -1), pool], -1)
        return self.dense(everything).reshape(len(x), self.kinds, -1).astype(jnp.float32)

    def _by_point(self, x: Trunk, pool: Float[Array, "batch pool"], board: BoardMask) -> Policies:
        batch, height, width, _ = x.shape
        logits = x if board.on is None else jnp.where(board.on, x, OFF_BOARD)
        logits = logits.reshape(batch, height * width, self.kinds, -1).swapaxes(1, 2).reshape(batch, self.kinds, -1)
        order = self.layout.order(height, width)
        if order is not None:
            logits = logits[..., order]
        if self.extra is None:
            return logits
        if self.extra_hidden is not None:
            pool = activate(self.extra_hidden(pool), self.activation)
        extra = self.extra(pool).reshape(batch, self.kinds, -1).astype(jnp.float32)
        return jnp.concatenate([logits, extra], -1)


class ValueHead(nnx.Module):
    """Win, draw or loss, and the extra heads about the end of the game."""

    norm: AnyNorm

    def __init__(self, spec: Spec, tower: Tower, game: Game, rngs: nnx.Rngs) -> None:
        channels = tower.value_channels
        self.norm = Norm(channels)
        self.hidden = Dense(3 * channels, tower.value_width, rngs, bias=True)
        self.summary = BoardSummary(tower.value_width, spec, game, rngs)
        owner = Conv(1, channels, 1, rngs, gain=OUTPUT_GAIN) if "ownership" in spec.heads else None
        self.ownership = nnx.data(owner)
        points = fitting.extra_targets(spec, game, "point")
        self.points = nnx.Dict({target.name: Conv(1, channels, 1, rngs, gain=OUTPUT_GAIN) for target in points})
        self.activation: Activation = spec.activation

    def __call__(
        self, x: Trunk, board: BoardMask, train: bool
    ) -> tuple[Float[Array, "batch hidden"], Float32[Array, "batch height width"] | None, dict[str, Array] | None]:
        """The hidden layer, which `summary` reads, ownership, and targets of the game for each point."""
        x = shaped(x, self.norm, self.activation, board, train)
        pool = board.scaled(board.mean(x)).astype(x.dtype)
        hidden = activate(self.hidden(pool), self.activation)

        def on_board(layer: Conv) -> Array:
            return board.hide(layer(x).astype(jnp.float32))[..., 0]

        ownership = None if self.ownership is None else on_board(self.ownership)
        return hidden, ownership, {name: on_board(layer) for name, layer in self.points.items()} or None


class BoardSummary(nnx.Module):
    """Outputs that are a few numbers per position, from one vector."""

    def __init__(self, width: int, spec: Spec, game: Game, rngs: nnx.Rngs) -> None:
        def last(outputs: int) -> Dense:
            return Dense(width, outputs, rngs, bias=True, gain=OUTPUT_GAIN)

        self.value = last(3)
        if game.halves_draws:
            self.value.kernel = nnx.Param(scaled(self.value.kernel[...], [1, 0, 1]))
            self.value.bias = nnx.Param(on_device([0, _NO_DRAW, 0]))
        self.score = nnx.data(last(2) if "score" in spec.heads else None)
        self.moves_left = nnx.data(last(1) if "moves_left" in spec.heads else None)
        numbers = fitting.extra_targets(spec, game, "number")
        self.numbers = nnx.Dict({target.name: last(target.outputs) for target in numbers})

    def __call__(self, x: Float[Array, "batch hidden"]) -> dict[str, Array]:
        found = {"value": self.value(x).astype(jnp.float32)}
        if self.score is not None:
            found["score"] = _POINTS * _mean_and_spread(self.score(x))
        if self.moves_left is not None:
            found["moves_left"] = _MOVES * jax.nn.softplus(self.moves_left(x).astype(jnp.float32)[:, 0])
        for name, layer in self.numbers.items():
            number = layer(x)
            found[name] = number.astype(jnp.float32)[:, 0] if number.shape[1] == 1 else _mean_and_spread(number)
        return found


def _mean_and_spread(x: Float[Array, "batch 2"]) -> Float32[Array, "batch 2"]:
    mean, spread = jnp.split(x.astype(jnp.float32), 2, -1)
    return jnp.concatenate([mean, jax.nn.softplus(spread)], -1)


class Heads(nnx.Module):
    """The norm at the tip of the trunk, the neck, and the heads."""

    tip: AnyNorm

    def __init__(self, spec: Spec, tower: Tower, game: Game, rngs: nnx.Rngs) -> None:
        channels, norm = tower.channels, tower.tip_norm
        self.tip = Norm(channels) if norm == "batch" else RmsNorm(channels, norm, shifted=True)
        self.neck = Conv(1, tower.channels, 2 * tower.policy_channels + tower.value_channels, rngs)
        self.policy = PolicyHead(spec, tower, game, rngs)
        self.value = ValueHead(spec, tower, game, rngs)
        self.kinds = kinds(spec, game)
        self.for_policy = 2 * tower.policy_channels
        self.activation: Activation = spec.activation
        self.kernels = False  # whether Tengen's GPU programs may be used, once folded

    def from_trunk(self, x: Trunk, board: BoardMask, train: bool) -> Float[Array, "batch height width neck"]:
        """The output of the neck without its bias."""
        return self.neck.unbiased(shaped(x, self.tip, self.activation, board, train))

    def __call__(self, x: Trunk, board: BoardMask, train: bool) -> Outputs:
        """`x` is the output of the neck without its bias."""
        found = self._from_neck(x, board, train)
        others = self.value.summary(found.hidden) | (found.extra or {})
        if found.ownership is not None:
            others["ownership"] = found.ownership
        return outputs(self.kinds, found.policies, others)

    def _from_neck(self, x: Trunk, board: BoardMask, train: bool) -> gpu.HeadOutputs:
        """From the output of the neck without its bias."""

        def plain(x: Array) -> gpu.HeadOutputs:
            policies = self.policy(x, self.neck, board, train)
            return gpu.HeadOutputs(policies, *self.value(self.neck.biased(x)[..., self.for_policy :], board, train))

        weights = self.weights() if self.kernels and board.on is None else None
        if weights is None or not gpu.suits_heads(x, weights):
            return plain(x)
        assert isinstance(board.side, float)
        assert isinstance(board.square, float)
        scales = board.side, board.square
        program = partial(
            gpu.heads, weights=weights, kinds=self.policy.kinds, scales=scales, activation=self.activation
        )
        return lax.platform_dependent(x, cuda=program, default=plain)

    def weights(self) -> gpu.HeadWeights | None:
        """The weights for the GPU program, once folded; None if it does not support the layout of the actions."""
        policy, value = self.policy, self.value
        numbered = policy.layout.numbering is not None
        if policy.points is None or policy.extra_hidden is not None or numbered or value.points:
            return None
        assert self.neck.bias is not None
        assert value.hidden.bias is not None
        return gpu.HeadWeights(
            shift=self.neck.bias[...],
            bias=policy.pool.dense.kernel[...],
            points=policy.points.kernel[0, 0],
            extra=None if policy.extra is None else policy.extra.kernel[...],
            hidden=value.hidden.kernel[...],
            hidden_bias=value.hidden.bias[...],
            ownership=None if value.ownership is None else value.ownership.kernel[0, 0],
        )

    def fold(self) -> None:
        self.tip = without_statistics(self.tip)
        value = taken_over(self.value.norm)
        self.value.norm = Nothing()
        taken = zip(self.policy.pool.fold(), value, strict=True)
        self.neck.absorb(*(jnp.concatenate(pair) for pair in taken))


def outputs(kinds: tuple[str, ...], policies: Policies, others: dict[str, Array]) -> Outputs:
    """All outputs, from the policies in the order of `kinds` and the others by name."""
    return Outputs.of({name: policies[:, number] for number, name in enumerate(kinds)} | others)
