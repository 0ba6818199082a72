"""The architecture of a network, as plain data that is stored beside its parameters."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tengen import schema
from tengen.errors import OptionError
from tengen.schema import REQUIRED, setting

Activation = Literal["relu", "mish", "silu"]
Lc0Activation = Literal["relu", "mish", "silu", "relu_2"]  # relu_2: the square of relu
AnyActivation = Lc0Activation | Literal["selu"]
Head = str
HEADS: tuple[Head, ...] = ("ownership", "score", "opponent_policy", "moves_left")
"""Extra heads that Tengen knows. A game may declare targets of other names, which are heads too."""
HEAD_NAME = "[a-z][a-z0-9_]{0,39}"
Dtype = Literal["bfloat16", "float32"]
_SPECIAL = ("function", "lc0", "lc0_encoders")  # in place of a tower and layers
FILE_NAME = "model.safetensors"  # the file of a network, in its folder


@dataclass(frozen=True)
class TowerAttention:
    """Attention between all points, and dense layers for each of them, in place of convolutions."""

    blocks: tuple[int, ...] = setting(REQUIRED, "blocks with attention, counted from 1", low=1)
    heads: int = setting(REQUIRED, "heads of the attention", low=1, high=1024)
    kv_heads: int = setting(REQUIRED, "heads of keys and values, each for as many of the others", low=1, high=1024)
    key_width: int = setting(REQUIRED, "width of a query and a key, for each head", low=1, high=4096)
    value_width: int = setting(REQUIRED, "width of a value, for each head", low=1, high=4096)
    turning: Literal["none", "fixed", "learned"] = setting(
        REQUIRED, "rotary position embedding: how far keys and queries turn from point to point"
    )
    base: float = setting(REQUIRED, "base of the angles, unless they are learned", low=1, high=1e6)
    dense_width: int = setting(REQUIRED, "hidden units of the dense layers", low=1, high=65536)


@dataclass(frozen=True)
class Tower:
    """Residual blocks on a board, and the width of their heads."""

    blocks: int = setting(REQUIRED, "residual blocks", low=1, high=200)
    channels: int = setting(REQUIRED, "channels between the blocks", low=1, high=4096)
    kind: Literal["residual", "nested"] = setting(REQUIRED, "two convolutions each, or bottlenecks around whole blocks")
    mid_channels: int = setting(REQUIRED, "channels inside a block", low=1, high=4096)
    inner_blocks: int = setting(REQUIRED, "residual blocks inside a nested one; 0 if not nested", low=0, high=20)
    groups: int = setting(REQUIRED, "groups of the 3x3 convolution (ResNeXt); 1 for plain blocks", low=1, high=4096)
    pool_blocks: tuple[int, ...] = setting(REQUIRED, "blocks with global pooling, counted from 1", low=1)
    pool_channels: int = setting(REQUIRED, "channels that they pool", low=1, high=4096)
    excite_ratio: int | None = setting(REQUIRED, "squeeze-and-excitation: channels per hidden unit (null: none)", low=1)
    policy_channels: int = setting(REQUIRED, "channels of the policy head, regular and pooled each", low=1, high=4096)
    value_channels: int = setting(REQUIRED, "channels of the value head", low=1, high=4096)
    value_width: int = setting(REQUIRED, "hidden units of the value head", low=1, high=65536)
    stem_side: int = setting(REQUIRED, "side of the first convolution's kernel", low=1, high=19, before=3)
    pass_units: int | None = setting(
        REQUIRED, "units between the pool and actions without a point, such as a pass (null: none)", low=1, before=None
    )
    attention: TowerAttention | None = setting(REQUIRED, "attention in place of convolutions (null: none)", before=None)
    tip_norm: Literal["batch", "point", "board"] = setting(
        REQUIRED,
        "norm after the blocks: by the statistics of training, or by the channels of the point or the board",
        before="batch",
    )

    def check_together(self) -> Iterator[tuple[str, str]]:
        if (self.inner_blocks > 0) != (self.kind == "nested"):
            allowed = "at least 1 in nested blocks" if self.kind == "nested" else "0 in residual blocks"
            yield "inner_blocks", f"expected {allowed}, got {self.inner_blocks}"
        if self.mid_channels % self.groups:
            yield "groups", f"expected a divisor of the {self.mid_channels} channels inside a block, got {self.groups}"
        if list(self.pool_blocks) != sorted({n for n in self.pool_blocks if n <= self.blocks}):
            found = ", ".join(map(str, self.pool_blocks))
            yield "pool_blocks", f"expected rising numbers from 1 to {self.blocks}, got {found}"
        if self.pool_blocks and self.pool_channels >= self.mid_channels:
            yield "pool_channels", f"expected fewer than the {self.mid_channels} in a block, got {self.pool_channels}"
        if self.stem_side % 2 == 0:
            yield "stem_side", f"expected an odd number, got {self.stem_side}"
        if self.excite_ratio is not None and self.excite_ratio > self.channels:
            yield "excite_ratio", f"expected at most the {self.channels} channels, got {self.excite_ratio}"
        if (attention := self.attention) is not None:
            if not (set(attention.blocks) <= set(range(1, self.blocks + 1)) - set(self.pool_blocks)):
                yield "attention", f"blocks: expected numbers from 1 to {self.blocks} of blocks that do not pool"
            if attention.heads % attention.kv_heads:
                yield "attention", f"kv_heads: expected a divisor of {attention.heads}, got {attention.kv_heads}"
            if attention.turning != "none" and attention.key_width % 2:
                yield "attention", f"key_width: expected an even number, got {attention.key_width}"
            if self.excite_ratio is not None:
                yield "excite_ratio", "expected null for a tower with attention"


@dataclass(frozen=True)
class Layers:
    """Dense layers, for games without a board."""

    count: int = setting(REQUIRED, "hidden layers", low=1, high=200)
    width: int = setting(REQUIRED, "units of each", low=1, high=65536)


@dataclass(frozen=True)
class Lc0Tower:
    """A tower with the blocks and heads of Lc0, for chess."""

    blocks: int = setting(REQUIRED, "residual blocks of two convolutions", low=1, high=200)
    channels: int = setting(REQUIRED, "channels of all convolutions", low=1, high=4096)
    excite_units: int | None = setting(REQUIRED, "units of squeeze-and-excitation (null: without)", low=1, high=4096)
    policy: Literal["dense", "convolution", "attention"] = setting(REQUIRED, "kind of the policy head")
    policy_channels: int = setting(REQUIRED, "channels of the policy head", low=1, high=4096)
    key_width: int = setting(REQUIRED, "width of queries and keys; 0 without attention", low=0, high=4096)
    value_channels: int = setting(REQUIRED, "channels of the value head", low=1, high=4096)
    value_width: int = setting(REQUIRED, "hidden units of the value head", low=1, high=65536)
    moves_channels: int = setting(REQUIRED, "channels of the head for moves left", low=1, high=4096)
    moves_width: int = setting(REQUIRED, "its hidden units", low=1, high=65536)

    def check_together(self) -> Iterator[tuple[str, str]]:
        if (self.key_width > 0) != (self.policy == "attention"):
            allowed = "at least 1 with attention" if self.policy == "attention" else "0 without attention"
            yield "key_width", f"expected {allowed}, got {self.key_width}"


@dataclass(frozen=True)
class Lc0Smolgen:
    """What is added to the logits of the attention, computed from the whole position."""

    channels: int = setting(REQUIRED, "numbers that are left of each square", low=1, high=4096)
    width: int = setting(REQUIRED, "hidden units", low=1, high=65536)
    outputs: int = setting(REQUIRED, "numbers per head, from which all pairs of squares get theirs", low=1, high=4096)
    activation: Lc0Activation = setting(REQUIRED, "between its layers")


@dataclass(frozen=True)
class Lc0Encoders:
    """A body of encoder layers (a transformer) with the heads of Lc0, for chess."""

    layers: int = setting(REQUIRED, "encoder layers", low=1, high=200)
    channels: int = setting(REQUIRED, "channels of each square", low=1, high=8192)
    width: int = setting(REQUIRED, "width of queries, keys and values, all heads together", low=1, high=8192)
    heads: int = setting(REQUIRED, "heads of the attention", low=1, high=1024)
    ffn_width: int = setting(REQUIRED, "hidden units of the dense layers", low=1, high=65536)
    ffn_activation: Lc0Activation = setting(REQUIRED, "between these")
    embedding: Literal["map", "dense"] = setting(
        REQUIRED, "what is added to the planes: a fixed map of reachable squares, or a dense layer of all pieces"
    )
    around_width: int = setting(REQUIRED, "outputs of that layer per square; 0 with the map", low=0, high=8192)
    embedding_ffn_width: int = setting(REQUIRED, "hidden units behind the embedding; 0 with the map", low=0, high=65536)
    gates: bool = setting(REQUIRED, "a factor and an addend for each square and channel of the embedding")
    smolgen: Lc0Smolgen | None = setting(REQUIRED, "added to the logits of the attention (null: nothing)")
    policy_channels: int = setting(REQUIRED, "channels of the policy head", low=1, high=8192)
    key_width: int = setting(REQUIRED, "width of its queries and keys", low=1, high=8192)
    value_channels: int = setting(REQUIRED, "channels of the value head", low=1, high=4096)
    value_width: int = setting(REQUIRED, "hidden units of the value head", low=1, high=65536)
    moves_channels: int = setting(REQUIRED, "channels of the head for moves left", low=1, high=4096)
    moves_width: int = setting(REQUIRED, "its hidden units", low=1, high=65536)

    @property
    def share(self) -> float:
        """The factor of what a layer adds (DeepNorm)."""
        return (2 * self.layers) ** -0.25

    @property
    def epsilon(self) -> float:
        return 1e-3 if self.embedding == "dense" else 1e-6

    def check_together(self) -> Iterator[tuple[str, str]]:
        if self.width % self.heads:
            yield "heads", f"expected a divisor of the width {self.width}, got {self.heads}"
        for name in ("around_width", "embedding_ffn_width"):
            if (getattr(self, name) > 0) != (self.embedding == "dense"):
                allowed = "at least 1" if self.embedding == "dense" else "0"
                yield name, f"expected {allowed} for the embedding {self.embedding}, got {getattr(self, name)}"


@dataclass(frozen=True)
class Architecture:
    """The layers of a network, apart from its game and its extra heads."""

    tower: Tower | None = setting(REQUIRED, "for a game on a board")
    layers: Layers | None = setting(REQUIRED, "for a game without one")
    activation: Activation = setting(REQUIRED, "between layers")

    def check_together(self) -> Iterator[tuple[str, str]]:
        if (self.tower is None) == (self.layers is None):
            yield "tower", "expected either a tower or layers, the other null"


class NetOptions(dict[str, Any]):
    """Options of a user's function: JSON data with a hash, as the architecture of a compiled network needs one."""

    def __init__(self, given: Any = None) -> None:
        """As `dict`, or None for no options."""
        options = dict(given or {})
        try:
            super().__init__(json.loads(json.dumps(options)))
        except (TypeError, ValueError) as error:
            raise OptionError(f"options: expected numbers, texts, lists and mappings: {error}") from None

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(json.dumps(self, sort_keys=True))


@dataclass(frozen=True)
class Spec(Architecture):
    """The architecture of a network, apart from its game."""

    heads: tuple[Head, ...] = setting(
        REQUIRED, "predicted besides policy and value", pattern=HEAD_NAME, words="the name of a head, such as ownership"
    )
    function: str | None = setting(
        None, "PACKAGE.MODULE:FUNCTION that builds the network, without tower and layers", before=None
    )
    options: dict[str, Any] | None = setting(None, "options of the function", before=None)
    lc0: Lc0Tower | None = setting(None, "a tower as Lc0 has them, without another tower and layers", before=None)
    lc0_encoders: Lc0Encoders | None = setting(None, "or encoder layers as Lc0 has them", before=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", NetOptions(self.options))

    @staticmethod
    def custom(function: str, heads: Iterable[Head] = (), options: Mapping[str, Any] | None = None) -> "Spec":
        """The network that a user's function builds, see `nets.custom`."""
        return Spec(None, None, "relu", tuple(heads), function, NetOptions(options))

    def check_together(self) -> Iterator[tuple[str, str]]:
        given = [name for name in _SPECIAL if getattr(self, name) is not None]
        if not given:
            yield from super().check_together()
        elif self.tower is not None or self.layers is not None or len(given) > 1:
            yield given[0], "expected null for a network with a tower or layers"
        if len(set(self.heads)) < len(self.heads):
            yield "heads", f"expected each head once, got {', '.join(self.heads)}"

    @property
    def is_lc0(self) -> bool:
        """Whether it is a network as Lc0 has them, for chess."""
        return self.lc0 is not None or self.lc0_encoders is not None

    def to_dict(self) -> dict[str, Any]:
        found = schema.to_dict(self).items()
        return {key: value for key, value in found if value or key not in (*_SPECIAL, "options")}

    @staticmethod
    def from_dict(data: Mapping[str, Any], what: str = "network") -> "Spec":
        """Undoes `to_dict`. Raises OptionError, which names `what` and lists all problems."""
        spec, problems = schema.check(Spec, data, old=True)
        if spec is None:
            listed = "; ".join(f"{schema.dotted(path)}: {message}" for path, message in problems)
            raise OptionError(f"{what}: {listed}")
        return spec
