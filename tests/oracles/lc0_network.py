"""A slow and obvious network of Lc0 in NumPy, computed from the layers of its file, and random networks."""

from typing import Any

import numpy as np

from tengen.games import chess_lc0

SE, CLASSICAL_NETWORK = 4, 3
Layers = dict[str, Any]


def evaluate(net: Layers, planes: np.ndarray) -> dict[str, np.ndarray]:
    """The logits of all moves, win, draw and loss, and moves left, for planes [112, 8, 8] as the engine gives them."""
    form, w = net["format"]["network_format"], net["weights"]
    kind = "mish" if form.get("default_activation") else "relu"
    x = act(conv(planes.astype(np.float64), w["input"], 3), kind)
    for block in w["residual"]:
        y = conv(act(conv(x, block["conv1"], 3), kind), block["conv2"], 3)
        if "se" in block:
            se, width = block["se"], len(y)
            hidden = act(se["w1"].reshape(-1, width) @ y.mean((1, 2)) + se["b1"], kind)
            both = se["w2"].reshape(2 * width, -1) @ hidden + se["b2"]
            y = y / (1 + np.exp(-both[:width, None, None])) + both[width:, None, None]
        x = act(x + y, kind)
    found = {"policy": policy(form["policy"], w, x, kind)}
    hidden = act(dense(act(conv(x, w["value"], 1), kind).reshape(-1), w, "ip1_val"), kind)
    value = dense(hidden, w, "ip2_val")
    if len(value) == 3:
        found["wdl"] = np.exp(value - value.max()) / np.exp(value - value.max()).sum()
    else:
        q = np.tanh(value[0])
        found["wdl"] = np.array([(1 + q) / 2, 0, (1 - q) / 2])
    if form.get("moves_left"):
        hidden = act(dense(act(conv(x, w["moves_left"], 1), kind).reshape(-1), w, "ip1_mov"), kind)
        found["moves_left"] = np.maximum(dense(hidden, w, "ip2_mov"), 0)
    return found


def policy(kind: int, w: Layers, x: np.ndarray, activation: str) -> np.ndarray:
    if kind == 1:
        return dense(act(conv(x, w["policy"], 1), activation).reshape(-1), w, "ip_pol")
    if kind == 2:
        return conv(act(conv(x, w["policy1"], 3), activation), w["policy"], 3).reshape(-1)[chess_lc0.CONVOLUTION]
    squares = x.reshape(len(x), 64).T
    embedded = dense(squares, w, "ip_pol")
    embedded = 1.0507009873554805 * np.where(embedded > 0, embedded, 1.6732632423543772 * (np.exp(embedded) - 1))
    query, key = dense(embedded, w, "ip2_pol"), dense(embedded, w, "ip3_pol")
    logits = query @ key.T / np.sqrt(query.shape[1])
    offsets = key[56:] @ w["ip4_pol_w"].reshape(4, -1).T
    every = np.zeros(chess_lc0.ATTENTION_LOGITS)
    every[:4096] = logits.reshape(-1)
    for start in range(8):
        for end in range(8):
            for piece in range(3):
                extra = offsets[end, piece] + offsets[end, 3]
                every[4096 + start * 24 + end * 3 + piece] = logits[48 + start, 56 + end] + extra
    return every[chess_lc0.ATTENTION]


def conv(x: np.ndarray, layer: Layers, side: int) -> np.ndarray:
    """With the norm of the layer, if it has one."""
    inputs = len(x)
    kernel = layer["weights"].astype(np.float64).reshape(-1, inputs, side, side)
    wide = np.pad(x, ((0, 0), *[(side // 2, side // 2)] * 2))
    found = np.zeros((len(kernel), 8, 8))
    for y in range(side):
        for z in range(side):
            found += np.einsum("oi,irf->orf", kernel[:, :, y, z], wide[:, y : y + 8, z : z + 8])
    found += layer.get("biases", np.zeros(len(kernel)))[:, None, None]
    if "bn_means" in layer:
        scale = layer["bn_gammas"] / np.sqrt(layer["bn_stddivs"] + 1e-5)
        found = (found - layer["bn_means"][:, None, None]) * scale[:, None, None] + layer["bn_betas"][:, None, None]
    return found


def dense(x: np.ndarray, w: Layers, name: str) -> np.ndarray:
    bias = w[f"{name}_b"]
    return x @ w[f"{name}_w"].astype(np.float64).reshape(len(bias), -1).T + bias


def act(x: np.ndarray, kind: str) -> np.ndarray:
    return np.maximum(x, 0) if kind == "relu" else x * np.tanh(np.log1p(np.exp(x)))


def network(seed: int, *, policy: int = 2, se: bool = True, mish: bool = False, wdl: bool = True, left: bool = True,
            norms: bool = True, channels: int = 8) -> Layers:  # fmt: skip
    """A random network with two blocks."""
    numbers = np.random.default_rng(seed)

    def layer(*shape: int, gain: float = 1.0) -> np.ndarray:
        bound = gain / np.sqrt(np.prod(shape[1:]))
        return numbers.normal(0, bound, np.prod(shape)).astype(np.float32)

    def block(outputs: int, inputs: int, side: int, norm: bool = norms) -> Layers:
        found = {"weights": layer(outputs, inputs, side, side)}
        if not norm:
            return {**found, "biases": layer(outputs)}
        spread = numbers.uniform(0.2, 2, outputs).astype(np.float32)
        return {**found, "bn_means": layer(outputs), "bn_stddivs": spread, "bn_gammas": 1 + layer(outputs) / 5,
                "bn_betas": layer(outputs)}  # fmt: skip

    def both(name: str, outputs: int, inputs: int) -> Layers:
        return {f"{name}_w": layer(outputs, inputs, gain=2), f"{name}_b": layer(outputs) / 5}

    residual = []
    for _ in range(2):
        unit = {"w1": layer(4, channels), "b1": layer(4), "w2": layer(2 * channels, 4), "b2": layer(2 * channels)}
        residual.append({"conv1": block(channels, channels, 3), "conv2": block(channels, channels, 3)}
                        | ({"se": unit} if se else {}))  # fmt: skip
    weights: Layers = {
        "input": block(channels, 112, 3),
        "residual": residual,
        "value": block(4, channels, 1),
        **both("ip1_val", 16, 4 * 64),
        **both("ip2_val", 3 if wdl else 1, 16),
    }
    if policy == 1:
        weights |= {"policy": block(4, channels, 1)} | both("ip_pol", 1858, 4 * 64)
    elif policy == 2:
        weights |= {"policy1": block(channels, channels, 3), "policy": block(80, channels, 3, norm=False)}
    else:
        weights |= both("ip_pol", 12, channels) | both("ip2_pol", 6, 12) | both("ip3_pol", 6, 12)
        weights["ip4_pol_w"] = layer(4, 6)
    if left:
        weights |= {"moves_left": block(2, channels, 1)} | both("ip1_mov", 8, 2 * 64) | both("ip2_mov", 1, 8)
        weights["ip2_mov_b"] = np.full(1, 30, np.float32)
    form = {"input": 1, "output": 2 if wdl else 1, "network": SE if se else CLASSICAL_NETWORK, "policy": policy,
            "value": 2 if wdl else 1, "moves_left": int(left), "default_activation": int(mish)}  # fmt: skip
    return {"format": {"weights_encoding": 1, "network_format": form}, "weights": weights}
