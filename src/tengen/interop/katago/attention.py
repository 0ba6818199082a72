"""KataGo's blocks of attention and of dense layers as Tengen's, which has each pair of them as one block."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flax import nnx

from tengen.errors import TengenError
from tengen.interop.katago.model import AnyBlock, AttentionWeights, GatedWeights, NestedBottleneck, RmsNormWeights
from tengen.nets.blocks import AttentionBlock
from tengen.nets.norms import RMS_EPSILON, AnyNorm, RmsNorm

Pair = tuple[AttentionWeights, GatedWeights]
Setter = Callable[[Any, np.ndarray], None]
_MATRICES = ("query", "key", "value", "out")
_LAYERS = ("first", "gate", "last")


def paired(blocks: Sequence[AnyBlock]) -> "list[AnyBlock | Pair]":
    """The blocks, those of attention together with the dense layers behind them."""
    found: list[AnyBlock | Pair] = []
    rest = list(blocks)
    while rest:
        block = rest.pop(0)
        if isinstance(block, AttentionWeights):
            dense = rest.pop(0) if rest else None
            if not isinstance(dense, GatedWeights):
                raise TengenError("a block of attention is not followed by one of dense layers, which is not supported")
            found.append((block, dense))
        elif isinstance(block, GatedWeights):
            raise TengenError("a block of dense layers does not follow one of attention, which is not supported")
        else:
            found.append(block)
    return found


def inside(block: AnyBlock | Pair) -> "list[AnyBlock | Pair]":
    """The blocks inside a nested one, or the block itself."""
    return paired(block.blocks) if isinstance(block, NestedBottleneck) else [block]


def sizes(blocks: "Sequence[AnyBlock | Pair]") -> dict[str, Any] | None:
    """The fields of `TowerAttention` for a tower of these blocks; None without attention."""
    inner = {number: inside(block)[0] for number, block in enumerate(blocks, 1)}
    pairs = {number: block for number, block in inner.items() if isinstance(block, tuple)}
    if not pairs:
        return None
    attention, dense = next(iter(pairs.values()))
    turns = attention.turns
    return {
        "blocks": list(pairs),
        "heads": attention.heads,
        "kv_heads": attention.kv_heads,
        "key_width": attention.key.shape[1] // attention.kv_heads,
        "value_width": attention.value.shape[1] // attention.kv_heads,
        "turning": "none" if turns is None else "learned" if isinstance(turns, np.ndarray) else "fixed",
        "base": turns if isinstance(turns, float) else 100.0,
        "dense_width": dense.first.shape[1],
    }


def block_from(block: AttentionBlock, weights: Pair, put: Setter) -> None:
    """Gives the block these weights; `put` sets a parameter."""
    attention, dense = weights
    own = block.attention
    if attention.heads != own.sizes.heads or attention.kv_heads != own.sizes.kv_heads:
        raise TengenError("its blocks have different numbers of heads, which is not supported")
    if isinstance(attention.turns, np.ndarray) and own.frequencies is not None:
        put(own.frequencies, attention.turns)
    elif attention.turns != (own.sizes.base if own.sizes.turning == "fixed" else None):
        raise TengenError("its blocks have different position embeddings, which is not supported")
    norm_from(own.norm, attention.norm, put)
    norm_from(block.dense.norm, dense.norm, put)
    for name in _MATRICES:
        put(getattr(own, name).kernel, getattr(attention, name))
    for name in _LAYERS:
        put(getattr(block.dense, name).kernel, getattr(dense, name))


def norm_from(norm: AnyNorm, weights: RmsNormWeights, put: Setter) -> None:
    """Likewise for a norm, whose epsilon cannot be chosen."""
    assert isinstance(norm, RmsNorm)
    if not np.isclose(weights.epsilon, RMS_EPSILON, rtol=1e-3):
        raise TengenError(f"a norm has the epsilon {weights.epsilon:g}, expected {RMS_EPSILON:g}")
    put(norm.scale, weights.scale)
    if norm.shift is not None and weights.bias is not None:
        put(norm.shift, weights.bias)


def block_to(block: AttentionBlock) -> Pair:
    """The weights of a block."""
    own, its = block.attention, block.attention.sizes
    turns = None if its.turning == "none" else its.base
    return (
        AttentionWeights(
            norm_to(own.norm),
            *(_numbers(getattr(own, name).kernel) for name in _MATRICES),
            heads=its.heads,
            kv_heads=its.kv_heads,
            turns=turns if own.frequencies is None else _numbers(own.frequencies),
        ),
        GatedWeights(norm_to(block.dense.norm), *(_numbers(getattr(block.dense, name).kernel) for name in _LAYERS)),
    )


def norm_to(norm: RmsNorm) -> RmsNormWeights:
    """The weights of a norm."""
    shift = None if norm.shift is None else _numbers(norm.shift)
    return RmsNormWeights(_numbers(norm.scale), shift, RMS_EPSILON, norm.per == "board")


def _numbers(parameter: nnx.Param) -> np.ndarray:
    return np.asarray(parameter[...], np.float32)
