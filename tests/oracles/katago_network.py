"""A slow and obvious KataGo network in NumPy, computed from its file's layers, and random networks."""

from dataclasses import replace
from typing import Any

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


def evaluate(model: KataGoModel, planes: np.ndarray, scalars: np.ndarray) -> dict[str, np.ndarray]:
    """All outputs for planes [H, W, 22] and global inputs [19] of one position, as the file's layers give them."""
    x = conv(planes.astype(np.float64), model.stem) + scalars @ model.stem_globals.astype(np.float64)
    for layer in model.blocks:
        x = x + branch(layer, x)
    x = act(norm(x, model.tip_norm), model.tip_activation)
    policy, value = model.policy, model.value
    pooled = pool(act(norm(conv(x, policy.pooled), policy.pooled_norm), policy.activations[0]))
    p = act(norm(conv(x, policy.regular) + pooled @ policy.to_bias, policy.norm), policy.activations[1])
    points = conv(p, policy.points)[..., 0]
    if len(policy.passes) == 3:
        pooled = act(pooled @ policy.passes[0] + policy.passes[1], policy.activations[2])
    v = act(norm(conv(x, value.conv), value.norm), value.activations[0])
    mean, side = v.mean((0, 1)), (np.sqrt(v.shape[0] * v.shape[1]) - 14) / 10
    summary = np.concatenate([mean, mean * side, mean * (side**2 - 0.1)])
    hidden = act(summary @ value.hidden[0] + value.hidden[1], value.activations[1])
    scores = hidden @ value.score[0] + value.score[1]
    return {
        "policy": np.append(points.reshape(-1), (pooled @ policy.passes[-1])[0]),
        "value": hidden @ value.value[0] + value.value[1],
        "score": np.array([20 * scores[0], 20 * np.log1p(np.exp(scores[1]))]),
        "lead": 20 * scores[2],
        "ownership": conv(v, value.ownership)[..., 0],
    }


def branch(layer: AnyBlock, x: np.ndarray) -> np.ndarray:
    if isinstance(layer, AttentionWeights):
        return attend(layer, x)
    if isinstance(layer, GatedWeights):
        x = norm(x, layer.norm)
        return (act(x @ layer.first, "silu") * (x @ layer.gate)) @ layer.last
    if isinstance(layer, PoolBlock):
        x = act(norm(x, layer.norm), layer.activations[0])
        pooled = pool(act(norm(conv(x, layer.pooled), layer.pooled_norm), layer.activations[1]))
        x = conv(x, layer.regular) + pooled @ layer.to_bias
        return conv(act(norm(x, layer.second_norm), layer.activations[2]), layer.second)
    x = conv(act(norm(x, layer.norms[0]), layer.activations[0]), layer.convs[0])
    if isinstance(layer, NestedBottleneck):
        for inner in layer.blocks:
            x = x + branch(inner, x)
    return conv(act(norm(x, layer.norms[1]), layer.activations[1]), layer.convs[1])


def conv(x: np.ndarray, layer: ConvWeights) -> np.ndarray:
    side = layer.kernel.shape[0]
    reach = side // 2
    height, width, _ = x.shape
    padded = np.pad(x, ((reach, reach), (reach, reach), (0, 0)))
    shifts = [(dy, dx) for dy in range(side) for dx in range(side)]
    parts = [padded[dy : dy + height, dx : dx + width] @ layer.kernel[dy, dx].astype(np.float64) for dy, dx in shifts]
    return np.sum(parts, 0)


def attend(layer: AttentionWeights, x: np.ndarray) -> np.ndarray:
    """Head by head and point by point."""
    height, width, _ = x.shape
    seen = norm(x, layer.norm).reshape(height * width, -1)
    size, value_size = layer.key.shape[1] // layer.kv_heads, layer.value.shape[1] // layer.kv_heads
    found = []
    for head in range(layer.heads):
        shared = head * layer.kv_heads // layer.heads
        query = seen @ layer.query[:, head * size : (head + 1) * size].astype(np.float64)
        key = seen @ layer.key[:, shared * size : (shared + 1) * size].astype(np.float64)
        value = seen @ layer.value[:, shared * value_size : (shared + 1) * value_size].astype(np.float64)
        for point in range(height * width):
            y, x_ = divmod(point, width)
            for pair in range(size // 2 if layer.turns is not None else 0):
                angle = turn(layer, shared, pair, size // 2, y, x_)
                for turned in (query, key):
                    one, other = turned[point, 2 * pair : 2 * pair + 2]
                    turned[point, 2 * pair] = one * np.cos(angle) - other * np.sin(angle)
                    turned[point, 2 * pair + 1] = one * np.sin(angle) + other * np.cos(angle)
        shares = np.exp(query @ key.T / np.sqrt(size))
        found.append((shares / shares.sum(1, keepdims=True)) @ value)
    return (np.concatenate(found, 1) @ layer.out).reshape(height, width, -1)


def turn(layer: AttentionWeights, head: int, pair: int, pairs: int, y: int, x: int) -> float:
    """The angle by which a pair of channels is turned at (x, y)."""
    if isinstance(layer.turns, np.ndarray):
        return x * layer.turns[head, pair, 0] + y * layer.turns[head, pair, 1]
    assert layer.turns is not None
    if pair < pairs // 2:
        return y / layer.turns ** (2 * pair / pairs)
    return x / layer.turns ** (2 * (pair - pairs // 2) / pairs)


def norm(x: np.ndarray, layer: NormWeights | RmsNormWeights) -> np.ndarray:
    if isinstance(layer, RmsNormWeights):
        square = (x**2).mean() if layer.of_board else (x**2).mean(-1, keepdims=True)
        return x / np.sqrt(square + layer.epsilon) * layer.scale + (0 if layer.bias is None else layer.bias)
    return (x - layer.mean) / np.sqrt(layer.variance.astype(np.float64) + layer.epsilon) * layer.scale + layer.bias


def act(x: np.ndarray, kind: str) -> np.ndarray:
    if kind == "relu":
        return np.maximum(x, 0)
    return x * np.tanh(np.log1p(np.exp(x))) if kind == "mish" else x / (1 + np.exp(-x))


def pool(x: np.ndarray) -> np.ndarray:
    mean, side = x.mean((0, 1)), (np.sqrt(x.shape[0] * x.shape[1]) - 14) / 10
    return np.concatenate([mean, mean * side, x.max((0, 1))])


def random_model(
    version: int, *, nested: bool = False, activation: str = "relu", stem: int = 3, attention: str = "", tip: str = ""
) -> KataGoModel:
    """A small network with random numbers: two blocks, the second of which pools. A third one has attention.

    `attention` says how keys are turned, and `tip` what the norm after the blocks is computed from, if there are such.
    """
    rng = np.random.default_rng(version)

    def numbers(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32) / np.float32(np.sqrt(np.prod(shape[:-1])))

    def layer(side: int, inputs: int, outputs: int) -> ConvWeights:
        return ConvWeights(numbers(side, side, inputs, outputs))

    def normed(channels: int) -> NormWeights:
        mean, scale, bias = (rng.normal(size=channels).astype(np.float32) for _ in range(3))
        return NormWeights(mean, rng.uniform(0.5, 2, channels).astype(np.float32), scale, bias, 1e-3)

    def dense(inputs: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
        return numbers(inputs, outputs), rng.normal(size=outputs).astype(np.float32)

    def ordinary(channels: int, mid: int) -> OrdinaryBlock:
        norms = normed(channels), normed(mid)
        return OrdinaryBlock(norms, (layer(3, channels, mid), layer(3, mid, channels)), (activation,) * 2)

    def pooling(channels: int, mid: int, pooled: int) -> PoolBlock:
        regular = mid - pooled
        return PoolBlock(
            normed(channels), layer(3, channels, regular), layer(3, channels, pooled), normed(pooled),
            numbers(3 * pooled, regular), normed(regular), layer(3, regular, channels), (activation,) * 3,
        )  # fmt: skip

    def around(inner: AnyBlock) -> NestedBottleneck:
        convs = layer(1, 8, 6), layer(1, 6, 8)
        return NestedBottleneck((normed(8), normed(6)), convs, (activation,) * 2, (inner, ordinary(6, 6)))

    def squares(channels: int, bias: bool = False) -> RmsNormWeights:
        scale, shift = (rng.normal(size=channels).astype(np.float32) for _ in range(2))
        return RmsNormWeights(scale, shift if bias else None, 1e-6, bias and tip == "board")

    def looking(channels: int) -> tuple[AttentionWeights, GatedWeights]:
        place = {"none": None, "fixed": 100.0, "learned": rng.normal(size=(2, 2, 2)).astype(np.float32)}[attention]
        matrices = numbers(channels, 16), numbers(channels, 8), numbers(channels, 6), numbers(12, channels)
        dense = numbers(channels, 10), numbers(channels, 10), numbers(10, channels)
        return (
            AttentionWeights(squares(channels), *matrices, heads=4, kv_heads=2, turns=place),
            GatedWeights(squares(channels), *dense),
        )

    blocks: tuple[Any, ...] = (ordinary(8, 8), pooling(8, 8, 3))
    if nested:
        blocks = around(ordinary(6, 6)), around(pooling(6, 6, 2))
    if attention and nested:
        blocks = *blocks, replace(around(ordinary(6, 6)), blocks=(*looking(6), *looking(6)))
    elif attention:
        blocks = *blocks, *looking(8)
    outputs, scores = 2 if version >= 12 else 1, 4 if version == 8 else 6
    outputs = 4 if version == 16 else outputs
    passes: tuple[np.ndarray, ...] = (numbers(15, outputs),)
    if version >= 15:
        passes = (*dense(15, 5), numbers(5, outputs))  # as many units as channels, or KataGo refuses the file
    policy = PolicyWeights(
        layer(1, 8, 5), layer(1, 8, 5), normed(5), numbers(15, 5), normed(5), layer(1, 5, outputs), passes,
        (activation,) * (3 if version >= 15 else 2),
    )  # fmt: skip
    value = ValueWeights(
        layer(1, 8, 4), normed(4), dense(12, 9), dense(9, 3), dense(9, scores), layer(1, 4, 1), (activation,) * 2
    )
    multipliers = (20.0, 20.0, 20.0, 20.0, 40.0, 0.25, 150.0 if version >= 13 else 30.0)
    return KataGoModel(
        f"random-{version}", version, layer(stem, 22, 8), numbers(19, 8), blocks,
        squares(8, bias=True) if tip else normed(8), activation, policy, value,
        multipliers,
    )  # fmt: skip


def renamed(model: KataGoModel, name: str, **changed: Any) -> KataGoModel:
    """The model with another name and other fields."""
    return replace(model, name=name, **changed)
