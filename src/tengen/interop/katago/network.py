"""Tengen's networks for Go as KataGo's, and the other way round: only names and order of the numbers differ.

Tengen's own observation has some of KataGo's planes and global inputs; a network that learned with it ignores the rest.
"""

from typing import Any, TypeVar, cast

import numpy as np
from flax import nnx

from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.interop.katago import attention
from tengen.interop.katago.attention import Pair
from tengen.interop.katago.model import (
    AnyBlock,
    AttentionWeights,
    ConvWeights,
    GatedWeights,
    KataGoModel,
    NestedBottleneck,
    NormWeights,
    OrdinaryBlock,
    PolicyWeights,
    PoolBlock,
    RmsNormWeights,
    ValueWeights,
)
from tengen.interop.katago.model_writer import GLOBALS, PLANES
from tengen.nets import blocks
from tengen.nets.blocks import AttentionBlock, BlockChain, BlockStep, NestedBlock, PoolChain
from tengen.nets.building import build
from tengen.nets.heads import Heads
from tengen.nets.layers import Dense
from tengen.nets.network import BoardNetwork, Network
from tengen.nets.norms import EPSILON, AnyNorm, Norm, RmsNorm
from tengen.nets.specs import Dtype, Spec

_OUR_PLANES = (*range(7), *range(9, 14))  # KataGo's numbers of the planes that Tengen's own observation has
_OUR_GLOBALS = (*range(9), 14, 18)
_POINTS = 20.0  # the unit of both programs' score outputs
_NEVER = -100.0  # the logit of an outcome that does not happen
_ERROR = -1.0  # constant short-term errors, so that KataGo weights all playouts alike
_Layer = TypeVar("_Layer")


def to_katago(net: Network, game: Game, name: str) -> KataGoModel:
    """The network as one of KataGo. Raises TengenError for networks that KataGo cannot compute."""
    if problem := _not_for_katago(net, game):
        raise TengenError(f"{name}: {problem}")
    assert isinstance(net, BoardNetwork)
    spec = net.spec
    assert spec.tower is not None
    activation = spec.activation
    new = spec.tower.attention is not None or spec.tower.tip_norm != "batch"
    version = 17 if new else 15 if spec.tower.pass_units is not None else 8 if activation == "relu" else 11
    planes, scalars = _numbers(net.stem.conv.kernel), _numbers(_there(net.stem.scalars).kernel)
    kernel = np.zeros((*planes.shape[:2], PLANES, planes.shape[3]), np.float32)
    kernel[:, :, _known(planes.shape[2], _OUR_PLANES)] = planes
    from_globals = np.zeros((GLOBALS, scalars.shape[1]), np.float32)
    from_globals[_known(scalars.shape[0], _OUR_GLOBALS)] = scalars
    heads = net.heads
    return KataGoModel(
        name=name,
        version=version,
        stem=ConvWeights(kernel),
        stem_globals=from_globals,
        blocks=tuple(one for block in net.blocks for one in _blocks_to(block, activation)),
        tip_norm=attention.norm_to(heads.tip) if isinstance(heads.tip, RmsNorm) else _norm_to(heads.tip),
        tip_activation=activation,
        policy=_policy_to(heads, activation, outputs=2 if version >= 12 else 1),
        value=_value_to(heads, activation, scores=4 if version == 8 else 6),
    )


def from_katago(model: KataGoModel, game: Game, dtype: Dtype = "float32") -> BoardNetwork:
    """KataGo's network as Tengen's, for Go with `observation: katago`. Raises TengenError if that is impossible."""
    spec = _spec(model)
    if game.name != "go" or game.planes_shape[2] != PLANES:
        raise TengenError(f"{model.name}: a network of KataGo plays Go with observation: katago")
    net = build(spec, game, nnx.Rngs(0), dtype=dtype)
    assert isinstance(net, BoardNetwork)
    _set(net.stem.conv.kernel, model.stem.kernel)
    _set(_there(net.stem.scalars).kernel, model.stem_globals)
    for block, weights in zip(net.blocks, attention.paired(model.blocks), strict=True):
        _block_from(block, weights)
    heads, policy, value = net.heads, model.policy, model.value
    if isinstance(model.tip_norm, RmsNormWeights):
        attention.norm_from(heads.tip, model.tip_norm, _set)
    else:
        _norm_from(heads.tip, model.tip_norm)
    _set(heads.neck.kernel, np.concatenate([conv.kernel for conv in (policy.regular, policy.pooled, value.conv)], 3))
    _norm_from(heads.policy.pool.pooled_norm, policy.pooled_norm)
    _norm_from(heads.policy.pool.norm, policy.norm)
    _set(heads.policy.pool.dense.kernel, policy.to_bias)
    _set(_there(heads.policy.points).kernel, policy.points.kernel[..., :1])
    if len(policy.passes) == 3:
        _dense_from(_there(heads.policy.extra_hidden), (policy.passes[0], policy.passes[1]))
    _set(_there(heads.policy.extra).kernel, policy.passes[-1][:, :1])
    _norm_from(heads.value.norm, value.norm)
    _dense_from(heads.value.hidden, value.hidden)
    _dense_from(heads.value.summary.value, _outcomes_from(value.value, game))
    _dense_from(_there(heads.value.summary.score), (value.score[0][:, :2], value.score[1][:2]))
    _set(_there(heads.value.ownership).kernel, value.ownership.kernel)
    return net


def _known(count: int, ours: tuple[int, ...]) -> Any:
    """Which of KataGo's inputs a network has: all of them, or those of Tengen's own observation."""
    return list(ours) if count == len(ours) else slice(None)


def _not_for_katago(net: Network, game: Game) -> str:
    tower = net.spec.tower
    if game.name != "go":
        return f"a network for {game.name}, but KataGo plays Go"
    if not isinstance(net, BoardNetwork) or tower is None:
        return "KataGo computes residual towers only, not networks of other kinds"
    if net.folded:
        return "a folded network cannot be exported: export the one that it was folded from"
    if tower.groups > 1:
        return "KataGo has no grouped convolutions (-xt)"
    if tower.excite_ratio is not None:
        return "KataGo has no squeeze-and-excitation (-se)"
    if tower.pass_units is None and (tower.attention is not None or tower.tip_norm != "batch"):
        return "KataGo's networks with attention have a hidden layer for the pass: set pass_units to policy_channels"
    if tower.pass_units not in (None, tower.policy_channels):
        return f"KataGo wants as many pass_units as policy_channels, {tower.policy_channels}, not {tower.pass_units}"
    return ""


def _blocks_to(block: blocks.AnyBlock, activation: str) -> tuple[AnyBlock, ...]:
    """One block of KataGo, or two: attention, and dense layers."""
    if isinstance(block, AttentionBlock):
        return attention.block_to(block)
    branch = block.branch
    if isinstance(branch, BlockChain):
        first, second = branch.steps
        return (OrdinaryBlock(*_pair_to(first, second), (activation, activation)),)
    if isinstance(branch, PoolChain):
        both, regular = _numbers(branch.first.conv.kernel), branch.pool.regular
        pool = PoolBlock(
            norm=_norm_to(branch.first.norm),
            regular=ConvWeights(both[..., :regular]),
            pooled=ConvWeights(both[..., regular:]),
            pooled_norm=_norm_to(branch.pool.pooled_norm),
            to_bias=_numbers(branch.pool.dense.kernel),
            second_norm=_norm_to(branch.pool.norm),
            second=ConvWeights(_numbers(branch.second.kernel)),
            activations=(activation, activation, activation),
        )
        return (pool,)
    inner = tuple(one for inside in branch.inner for one in _blocks_to(inside, activation))
    return (NestedBottleneck(*_pair_to(branch.down, branch.up), (activation, activation), inner),)


def _pair_to(
    first: BlockStep, second: BlockStep
) -> tuple[tuple[NormWeights, NormWeights], tuple[ConvWeights, ConvWeights]]:
    norms = _norm_to(first.norm), _norm_to(second.norm)
    return norms, (ConvWeights(_numbers(first.conv.kernel)), ConvWeights(_numbers(second.conv.kernel)))


def _policy_to(heads: Heads, activation: str, outputs: int) -> PolicyWeights:
    policy, neck = heads.policy, _numbers(heads.neck.kernel)
    channels = policy.pool.regular

    def first(weights: Any) -> np.ndarray:
        """The policy among the outputs of a layer, for each of KataGo's policies."""
        return np.repeat(_numbers(weights)[..., :1], outputs, -1)

    passes: tuple[np.ndarray, ...] = (first(_there(policy.extra).kernel),)
    if policy.extra_hidden is not None:
        passes = (*_dense_to(policy.extra_hidden), *passes)
    return PolicyWeights(
        regular=ConvWeights(neck[..., :channels]),
        pooled=ConvWeights(neck[..., channels : 2 * channels]),
        pooled_norm=_norm_to(policy.pool.pooled_norm),
        to_bias=_numbers(policy.pool.dense.kernel),
        norm=_norm_to(policy.pool.norm),
        points=ConvWeights(first(_there(policy.points).kernel)),
        passes=passes,
        activations=(activation, activation, activation),
    )


def _value_to(heads: Heads, activation: str, scores: int) -> ValueWeights:
    value, summary = heads.value, heads.value.summary
    weights, bias = _dense_to(summary.value)
    score, score_bias = np.zeros((len(weights), scores), np.float32), np.zeros(scores, np.float32)
    score_bias[4:] = _ERROR
    if summary.score is not None:
        mean_and_spread, its_bias = _dense_to(summary.score)
        score[:, :2], score_bias[:2] = mean_and_spread, its_bias
        score[:, 2], score_bias[2] = mean_and_spread[:, 0], its_bias[0]  # the lead
    channels = value.hidden.kernel.shape[0] // 3
    owner = np.zeros((1, 1, channels, 1), np.float32)
    return ValueWeights(
        conv=ConvWeights(_numbers(heads.neck.kernel)[..., heads.for_policy :]),
        norm=_norm_to(value.norm),
        hidden=_dense_to(value.hidden),
        value=(
            np.stack([weights[:, 0], weights[:, 2], np.zeros_like(weights[:, 0])], 1),
            np.array([bias[0], bias[2], _NEVER], np.float32),
        ),
        score=(score, score_bias),
        ownership=ConvWeights(owner if value.ownership is None else _numbers(value.ownership.kernel)),
        activations=(activation, activation),
    )


def _outcomes_from(layer: tuple[np.ndarray, np.ndarray], game: Game) -> tuple[np.ndarray, np.ndarray]:
    """From win, loss and no result to win, draw and loss. Only under simple ko can a game end without a result."""
    weights, bias = layer
    none, none_bias = weights[:, 2], bias[2]
    if game.options.ko != "simple":
        none, none_bias = np.zeros_like(none), np.float32(_NEVER)
    return np.stack([weights[:, 0], none, weights[:, 1]], 1), np.array([bias[0], none_bias, bias[1]], np.float32)


def _spec(model: KataGoModel) -> Spec:
    """The spec of the network, or TengenError with what is not supported."""
    activations = {model.tip_activation, *model.policy.activations, *model.value.activations}
    activations |= {kind for block in model.blocks for kind in _activations(block)}
    if len(activations) > 1 or "identity" in activations:
        raise TengenError(f"{model.name}: its layers have several activations: {', '.join(sorted(activations))}")
    policy, value, tip = model.policy, model.value, model.tip_norm
    outer = attention.paired(model.blocks)
    inner = [attention.inside(block) for block in outer]
    pools = [number for number, blocks in enumerate(inner, 1) if isinstance(blocks[0], PoolBlock)]
    ordinary = next((block for blocks in inner for block in blocks if isinstance(block, OrdinaryBlock)), None)
    pooling = next((block for blocks in inner for block in blocks if isinstance(block, PoolBlock)), None)
    mid = ordinary.convs[0].kernel.shape[3] if ordinary else 0
    if isinstance(first := outer[0], NestedBottleneck):
        mid = mid or first.convs[0].kernel.shape[3]
    if pooling is not None:
        mid = mid or pooling.regular.kernel.shape[3] + pooling.pooled.kernel.shape[3]
    data = {
        "tower": {
            "blocks": len(outer),
            "channels": model.channels,
            "kind": "nested" if isinstance(first, NestedBottleneck) else "residual",
            "mid_channels": mid or model.channels,
            "inner_blocks": len(inner[0]) if isinstance(first, NestedBottleneck) else 0,
            "groups": 1,
            "pool_blocks": pools,
            "pool_channels": pooling.pooled.kernel.shape[3] if pooling else 1,
            "excite_ratio": None,
            "policy_channels": policy.regular.kernel.shape[3],
            "value_channels": value.conv.kernel.shape[3],
            "value_width": value.hidden[0].shape[1],
            "stem_side": model.stem.kernel.shape[0],
            "pass_units": policy.passes[0].shape[1] if len(policy.passes) == 3 else None,
            "attention": attention.sizes(outer),
            "tip_norm": "batch" if isinstance(tip, NormWeights) else "board" if tip.of_board else "point",
        },
        "layers": None,
        "activation": activations.pop(),
        "heads": ["ownership", "score"],
    }
    if policy.pooled.kernel.shape[3] != policy.regular.kernel.shape[3]:
        raise TengenError(f"{model.name}: its policy head pools another number of channels than it keeps")
    if model.multipliers[1] != _POINTS or model.multipliers[2] != _POINTS:
        raise TengenError(f"{model.name}: its scores have the unit {model.multipliers[1]:g}, expected {_POINTS:g}")
    return Spec.from_dict(data, model.name)


def _activations(block: AnyBlock) -> set[str]:
    if isinstance(block, AttentionWeights | GatedWeights):
        return set()
    inner = block.blocks if isinstance(block, NestedBottleneck) else ()
    return {*block.activations, *(kind for inside in inner for kind in _activations(inside))}


def _block_from(block: blocks.AnyBlock, weights: AnyBlock | Pair) -> None:
    if isinstance(block, AttentionBlock) != isinstance(weights, tuple):
        raise TengenError("its blocks come in an order that is not supported")
    if isinstance(block, AttentionBlock):
        attention.block_from(block, cast(Pair, weights), _set)
        return
    branch = block.branch
    if isinstance(branch, BlockChain) and isinstance(weights, OrdinaryBlock):
        _steps_from(tuple(branch.steps), weights)
    elif isinstance(branch, PoolChain) and isinstance(weights, PoolBlock):
        _norm_from(branch.first.norm, weights.norm)
        _set(branch.first.conv.kernel, np.concatenate([weights.regular.kernel, weights.pooled.kernel], 3))
        _norm_from(branch.pool.pooled_norm, weights.pooled_norm)
        _norm_from(branch.pool.norm, weights.second_norm)
        _set(branch.pool.dense.kernel, weights.to_bias)
        _set(branch.second.kernel, weights.second.kernel)
    elif isinstance(branch, NestedBlock) and isinstance(weights, NestedBottleneck):
        _steps_from((branch.down, branch.up), weights)
        inside = attention.inside(weights)
        if len(branch.inner) != len(inside):
            raise TengenError("its nested blocks have different numbers of blocks inside, which is not supported")
        for inner, its_weights in zip(branch.inner, inside, strict=True):
            _block_from(inner, its_weights)
    else:
        raise TengenError("its blocks come in an order that is not supported")


def _steps_from(steps: tuple[BlockStep, ...], weights: OrdinaryBlock | NestedBottleneck) -> None:
    for step, norm, conv in zip(steps, weights.norms, weights.convs, strict=True):
        _norm_from(step.norm, norm)
        _set(step.conv.kernel, conv.kernel)


def _there(layer: _Layer | None) -> _Layer:
    """A layer that every network for Go with these heads has."""
    assert layer is not None
    return layer


def _numbers(parameter: Any) -> np.ndarray:
    return np.asarray(parameter[...], np.float32)


def _set(parameter: Any, values: np.ndarray) -> None:
    if parameter.shape != values.shape:
        raise TengenError(f"its layers have different widths ({values.shape}, not {parameter.shape}): not supported")
    parameter[...] = values


def _dense_to(layer: Dense) -> tuple[np.ndarray, np.ndarray]:
    assert layer.bias is not None
    return _numbers(layer.kernel), _numbers(layer.bias)


def _dense_from(layer: Dense, weights: tuple[np.ndarray, np.ndarray]) -> None:
    _set(layer.kernel, weights[0])
    _set(layer.bias, weights[1])


def _norm_to(norm: AnyNorm) -> NormWeights:
    assert isinstance(norm, Norm)
    mean, variance, scale, shift = map(_numbers, (norm.mean, norm.variance, norm.scale, norm.shift))
    return NormWeights(mean, variance, scale, shift, EPSILON)


def _norm_from(norm: AnyNorm, weights: NormWeights) -> None:
    """KataGo's norm with another epsilon has another scale."""
    assert isinstance(norm, Norm)
    variance = weights.variance.astype(np.float64)
    scale = weights.scale * np.sqrt((variance + EPSILON) / (variance + weights.epsilon))
    parameters = (norm.mean, norm.variance, norm.scale, norm.shift)
    for parameter, values in zip(parameters, (weights.mean, variance, scale, weights.bias), strict=True):
        _set(parameter, values.astype(np.float32))
