"""KataGo's network as its model file describes it, one position at a time, in loops. NumPy and float64.

Weights are dictionaries named after the parts of that file; a BN is (mean, variance, scale, bias).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

EPSILON = 1e-4
ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda x: np.where(x > 0, x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
}


def conv(x: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """[H, W, I] by [K, K, I, O], the outside being zero."""
    height, width, _ = x.shape
    size, _, _, outputs = kernel.shape
    out = np.zeros((height, width, outputs))
    for y in range(height):
        for x_ in range(width):
            for dy in range(size):
                for dx in range(size):
                    from_y, from_x = y + dy - size // 2, x_ + dx - size // 2
                    if 0 <= from_y < height and 0 <= from_x < width:
                        out[y, x_] += x[from_y, from_x] @ kernel[dy, dx]
    return out


class Forward:
    """One look at Bool[H, W, C] planes, of which plane 0 is the board, and [S] scalars."""

    def __init__(self, weights: dict[str, Any], activation: str) -> None:
        self.weights = weights
        self.activation = ACTIVATIONS[activation]

    def __call__(self, planes: np.ndarray, scalars: np.ndarray) -> dict[str, np.ndarray]:
        self.mask = planes[:, :, 0].astype(bool)
        x = conv(planes.astype(float) * self.mask[:, :, None], self.weights["stem"]) + scalars @ self.weights["scalars"]
        for block in self.weights["blocks"]:
            x = self.block(block, x)
        x = self.norm(x, self.weights["tip"])
        return {**self.policy(self.weights["policy"], x), **self.value(self.weights["value"], x)}

    def norm(self, x: np.ndarray, bn: tuple[np.ndarray, ...]) -> np.ndarray:
        """BN, activation, mask."""
        mean, variance, scale, bias = bn
        return self.activation((x - mean) / np.sqrt(variance + EPSILON) * scale + bias) * self.mask[:, :, None]

    def pool(self, x: np.ndarray) -> np.ndarray:
        points = x[self.mask]
        side = np.sqrt(len(points))
        return np.concatenate([points.mean(0), points.mean(0) * (side - 14) / 10, points.max(0)])

    def block(self, w: dict[str, Any], x: np.ndarray) -> np.ndarray:
        h = self.norm(x, w["bn1"])
        if w["kind"] == "ordinary":
            return x + conv(self.norm(conv(h, w["conv1"]), w["bn2"]), w["conv2"])
        if w["kind"] == "gpool":
            pooled = self.pool(self.norm(conv(h, w["gpool"]), w["bn_pool"]))
            return x + conv(self.norm(conv(h, w["regular"]) + pooled @ w["matmul"], w["bn2"]), w["conv2"])
        assert w["kind"] == "nested_bottleneck"
        h = conv(h, w["conv1"])
        for inner in w["inner"]:
            h = self.block(inner, h)
        return x + conv(self.norm(h, w["bn2"]), w["conv2"])

    def policy(self, w: dict[str, Any], x: np.ndarray) -> dict[str, np.ndarray]:
        pooled = self.pool(self.norm(conv(x, w["g1"]), w["bn_pool"]))
        h = self.norm(conv(x, w["p1"]) + pooled @ w["matmul"], w["bn"])
        points, passes = conv(h, w["p2"]), pooled @ w["pass"]
        kinds = np.concatenate([points.reshape(-1, len(passes)), passes[None]])
        return {"policy": kinds[:, 0], "opponent_policy": kinds[:, 1]}

    def value(self, w: dict[str, Any], x: np.ndarray) -> dict[str, np.ndarray]:
        h = self.norm(conv(x, w["v1"]), w["bn"])
        mean, side = h[self.mask].mean(0), np.sqrt(self.mask.sum())
        pooled = np.concatenate([mean, mean * (side - 14) / 10, mean * ((side - 14) ** 2 / 100 - 0.1)])
        hidden = self.activation(pooled @ w["matmul"] + w["bias"])
        score, moves = hidden @ w["score"][0] + w["score"][1], hidden @ w["moves_left"][0] + w["moves_left"][1]
        return {
            "value": hidden @ w["logits"][0] + w["logits"][1],
            "score": 20 * np.array([score[0], np.log1p(np.exp(score[1]))]),
            "moves_left": 20 * np.log1p(np.exp(moves[0])),
            "ownership": conv(h, w["ownership"])[:, :, 0] * self.mask,
        }
