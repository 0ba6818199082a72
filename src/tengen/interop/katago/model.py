"""A network of KataGo as plain data: layers in the order of its file."""

from dataclasses import dataclass, field

import numpy as np

MULTIPLIERS = (20.0, 20.0, 20.0, 20.0, 40.0, 0.25, 30.0)  # of files without them: score mean and so on


@dataclass(frozen=True)
class ConvWeights:
    """A convolution without bias; `kernel` is Float32[height, width, inputs, outputs]."""

    kernel: np.ndarray


@dataclass(frozen=True)
class NormWeights:
    """Batch normalisation with fixed statistics; arrays are Float32[channels]."""

    mean: np.ndarray
    variance: np.ndarray
    scale: np.ndarray
    bias: np.ndarray
    epsilon: float


@dataclass(frozen=True)
class OrdinaryBlock:
    """Norm, activation and convolution, twice."""

    norms: tuple[NormWeights, NormWeights]
    convs: tuple[ConvWeights, ConvWeights]
    activations: tuple[str, str]


@dataclass(frozen=True)
class PoolBlock:
    """A block with global pooling: `pooled` channels add a bias to the `regular` ones."""

    norm: NormWeights
    regular: ConvWeights
    pooled: ConvWeights
    pooled_norm: NormWeights
    to_bias: np.ndarray  # Float32[3 * pooled, regular]
    second_norm: NormWeights
    second: ConvWeights
    activations: tuple[str, str, str]  # before the convolutions, of the pooled channels, before the last convolution


@dataclass(frozen=True)
class NestedBottleneck:
    """A convolution to fewer channels, blocks there, and a convolution back."""

    norms: tuple[NormWeights, NormWeights]
    convs: tuple[ConvWeights, ConvWeights]
    activations: tuple[str, str]
    blocks: "tuple[AnyBlock, ...]"


@dataclass(frozen=True)
class RmsNormWeights:
    """A norm by the root of the mean square: over the channels of each point, or of the whole board."""

    scale: np.ndarray  # Float32[channels]
    bias: np.ndarray | None  # likewise; those inside blocks have none
    epsilon: float
    of_board: bool = False


@dataclass(frozen=True)
class AttentionWeights:
    """A block that lets all points look at each other. Matrices are Float32[inputs, outputs]."""

    norm: RmsNormWeights
    query: np.ndarray  # [channels, heads * key width]
    key: np.ndarray  # [channels, kv_heads * key width]
    value: np.ndarray  # [channels, kv_heads * value width]
    out: np.ndarray  # [heads * value width, channels]
    heads: int
    kv_heads: int
    turns: np.ndarray | float | None
    """Rotary position embedding: learned, Float32[kv_heads, key width / 2, 2] by row and column; its base; or none."""


@dataclass(frozen=True)
class GatedWeights:
    """A block of dense layers for each point: (silu(x @ first) * (x @ gate)) @ last."""

    norm: RmsNormWeights
    first: np.ndarray
    gate: np.ndarray
    last: np.ndarray


AnyBlock = OrdinaryBlock | PoolBlock | NestedBottleneck | AttentionWeights | GatedWeights


@dataclass(frozen=True)
class PolicyWeights:
    """The policy head. Channel 0 of the last layers is the policy; version 12 and later have more, 2 or 4."""

    regular: ConvWeights
    pooled: ConvWeights
    pooled_norm: NormWeights
    to_bias: np.ndarray  # Float32[3 * pooled, regular]
    norm: NormWeights
    points: ConvWeights
    passes: tuple[
        np.ndarray, ...
    ]  # [3 * pooled, outputs]; from version 15 [3 * pooled, hidden], [hidden], [hidden, outputs]
    activations: tuple[str, ...]  # of the pooled channels, before the last convolution, and in the pass's layers


@dataclass(frozen=True)
class ValueWeights:
    """The value head: win, loss and no result; score values; ownership."""

    conv: ConvWeights
    norm: NormWeights
    hidden: tuple[np.ndarray, np.ndarray]  # Float32[3 * channels, hidden], [hidden]
    value: tuple[np.ndarray, np.ndarray]  # Float32[hidden, 3], [3]
    score: tuple[np.ndarray, np.ndarray]  # Float32[hidden, 4 or 6], [4 or 6]
    ownership: ConvWeights
    activations: tuple[str, str]


@dataclass(frozen=True)
class KataGoModel:
    """A network of KataGo."""

    name: str
    version: int
    stem: ConvWeights  # of the 22 planes
    stem_globals: np.ndarray  # Float32[19, channels]
    blocks: tuple[AnyBlock, ...]
    tip_norm: NormWeights | RmsNormWeights
    tip_activation: str
    policy: PolicyWeights
    value: ValueWeights
    multipliers: tuple[float, ...] = field(default=MULTIPLIERS)
    areas_by_suicide: bool = False  # whether it expects pass-alive areas as if suicide were always allowed

    @property
    def channels(self) -> int:
        """The channels between the blocks."""
        return self.stem.kernel.shape[3]
