"""Writing KataGo's network files: the tokens and numbers of a network in their order."""

from collections.abc import Sequence

import numpy as np

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

PLANES, GLOBALS = 22, 19
MARK = b"@BIN@"  # before numbers


class ModelWriter:
    """Collects the tokens of a network in `data`."""

    def __init__(self, model: KataGoModel) -> None:
        self._version = model.version
        self._pieces: list[bytes] = []
        self._add(model.name, model.version, PLANES, GLOBALS)
        if model.version >= 13:
            self._add(*model.multipliers)
        if model.version >= 15:
            self._add(0, int(model.areas_by_suicide), *[0] * 6)
        self._add("trunk", len(model.blocks), *[model.channels] * 5)
        if model.version >= 15:
            self._add(int(isinstance(model.tip_norm, RmsNormWeights)), *[0] * 5)
        self._conv("stem", model.stem)
        self._matrix("stem_globals", model.stem_globals)
        for number, block in enumerate(model.blocks):
            self._block(f"block{number}", block)
        self._norm("tip", model.tip_norm, model.tip_activation)
        self._policy(model.policy)
        self._value(model.value)

    @property
    def data(self) -> bytes:
        return b"".join(self._pieces)

    def _add(self, *tokens: object) -> None:
        self._pieces.extend(f"{token}\n".encode() for token in tokens)

    def _numbers(self, values: np.ndarray) -> None:
        self._pieces.extend((MARK, np.ascontiguousarray(values, "<f4").tobytes(), b"\n"))

    def _conv(self, name: str, conv: ConvWeights) -> None:
        self._add(name, *conv.kernel.shape, 1, 1)
        self._numbers(conv.kernel)

    def _matrix(self, name: str, weights: np.ndarray) -> None:
        self._add(name, *weights.shape)
        self._numbers(weights)

    def _norm(self, name: str, norm: NormWeights | RmsNormWeights, activation: str) -> None:
        if isinstance(norm, RmsNormWeights):
            self._add(f"{name}_norm", len(norm.scale), norm.epsilon, int(norm.of_board), 0)
            self._numbers(norm.scale)
            self._numbers(np.zeros_like(norm.scale) if norm.bias is None else norm.bias)
            self._activation(name, activation)
            return
        self._add(f"{name}_norm", len(norm.mean), norm.epsilon, 1, 1)
        for values in (norm.mean, norm.variance, norm.scale, norm.bias):
            self._numbers(values)
        self._activation(name, activation)

    def _activation(self, name: str, activation: str) -> None:
        self._add(f"{name}_activation", *([f"ACTIVATION_{activation.upper()}"] if self._version >= 11 else []))

    def _block(self, name: str, block: AnyBlock) -> None:
        if isinstance(block, OrdinaryBlock):
            self._add("ordinary_block", name)
            self._steps(name, block, (0, 1))
        elif isinstance(block, PoolBlock):
            self._add("gpool_block", name)
            self._norm(f"{name}_first", block.norm, block.activations[0])
            self._conv(f"{name}_regular", block.regular)
            self._conv(f"{name}_pooled", block.pooled)
            self._norm(f"{name}_pooled", block.pooled_norm, block.activations[1])
            self._matrix(f"{name}_bias", block.to_bias)
            self._norm(f"{name}_second", block.second_norm, block.activations[2])
            self._conv(f"{name}_second", block.second)
        elif isinstance(block, AttentionWeights):
            self._attention(name, block)
        elif isinstance(block, GatedWeights):
            self._add("transformer_ffn_block", name, *block.first.shape, 1)
            self._point_norm(name, block.norm)
            for part, weights in (("first", block.first), ("gate", block.gate), ("last", block.last)):
                self._matrix(f"{name}_{part}", weights)
        else:
            self._add("nested_bottleneck_block", name, len(block.blocks))
            self._steps(name, block, (0,))
            for number, inner in enumerate(block.blocks):
                self._block(f"{name}_{number}", inner)
            self._steps(name, block, (1,))

    def _steps(self, name: str, block: OrdinaryBlock | NestedBottleneck, which: Sequence[int]) -> None:
        for number in which:
            self._norm(f"{name}_{number}", block.norms[number], block.activations[number])
            self._conv(f"{name}_{number}", block.convs[number])

    def _attention(self, name: str, block: AttentionWeights) -> None:
        heads, kv_heads, turns = block.heads, block.kv_heads, block.turns
        widths = block.key.shape[1] // kv_heads, block.value.shape[1] // kv_heads
        flags = int(turns is not None), int(isinstance(turns, np.ndarray))
        self._add("transformer_attention_block", name, heads, kv_heads, *widths, *flags)
        self._point_norm(name, block.norm)
        for part in ("query", "key", "value", "out"):
            self._matrix(f"{name}_{part}", getattr(block, part))
        if isinstance(turns, np.ndarray):
            self._add(f"{name}_turns", *turns.shape)
            self._numbers(turns)
        elif turns is not None:
            self._add(f"{name}_base", turns)

    def _point_norm(self, name: str, norm: RmsNormWeights) -> None:
        self._add(f"{name}_norm", len(norm.scale), norm.epsilon)
        self._numbers(norm.scale)

    def _policy(self, head: PolicyWeights) -> None:
        self._add("policy", *([head.points.kernel.shape[3], 0, 0, 0] if self._version >= 17 else []))
        self._conv("policy_regular", head.regular)
        self._conv("policy_pooled", head.pooled)
        self._norm("policy_pooled", head.pooled_norm, head.activations[0])
        self._matrix("policy_bias", head.to_bias)
        self._norm("policy", head.norm, head.activations[1])
        self._conv("policy_points", head.points)
        if len(head.passes) == 1:
            self._matrix("policy_pass", head.passes[0])
            return
        first, bias, second = head.passes
        self._matrix("policy_pass_hidden", first)
        self._bias("policy_pass_hidden_bias", bias)
        self._activation("policy_pass", head.activations[2])
        self._matrix("policy_pass", second)

    def _value(self, head: ValueWeights) -> None:
        self._add("value", *[0] * (3 if self._version >= 17 else 0))
        self._conv("value_conv", head.conv)
        self._norm("value", head.norm, head.activations[0])
        for name, (weights, bias) in (("hidden", head.hidden), ("value", head.value), ("score", head.score)):
            self._matrix(f"{name}", weights)
            self._bias(f"{name}_bias", bias)
            if name == "hidden":
                self._activation("hidden", head.activations[1])
        self._conv("ownership", head.ownership)

    def _bias(self, name: str, values: np.ndarray) -> None:
        self._add(name, len(values))
        self._numbers(values)
