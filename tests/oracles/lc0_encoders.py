"""A slow and obvious network of Lc0 with encoder layers in NumPy, and random networks of that kind."""

from typing import Any

import numpy as np

from tengen.games import chess_lc0
from tests.oracles.lc0_network import Layers, act, dense

ACTIVATIONS = {0: "mish", 1: "mish", 2: "relu", 7: "swish", 8: "relu_2"}


def evaluate(net: Layers, planes: np.ndarray) -> dict[str, np.ndarray]:
    """As in `lc0_network`."""
    form, w = net["format"]["network_format"], net["weights"]
    new = form["network"] == 7
    eps, alpha = 1e-3 if new else 1e-6, (2 * len(w["encoder"])) ** -0.25
    policy = w["policy_heads"]["vanilla"] if new else w
    value = w["value_heads"]["winner"] if new else w
    squares = planes.reshape(112, 64).T.astype(np.float64)
    if new:
        more = dense(squares[:, :12].reshape(-1), w, "ip_emb_preproc").reshape(64, -1)
    else:
        more = np.array([[relation(one, other) for other in range(64)] for one in range(64)])
    x = act(dense(np.concatenate([squares, more], 1), w, "ip_emb"), "mish")
    if new:
        x = norm(x, w["ip_emb_ln_gammas"], w["ip_emb_ln_betas"], eps)
    if "ip_mult_gate" in w:
        x = x * w["ip_mult_gate"].reshape(-1, 64).T + w["ip_add_gate"].reshape(-1, 64).T
    if new:
        x = x + alpha * feed_forward(x, w["ip_emb_ffn"], form)
        x = norm(x, w["ip_emb_ffn_ln_gammas"], w["ip_emb_ffn_ln_betas"], eps)
    for layer in w["encoder"]:
        x = x + alpha * attention(x, layer["mha"], w, form)
        x = norm(x, layer["ln1_gammas"], layer["ln1_betas"], eps)
        x = norm(x + alpha * feed_forward(x, layer["ffn"], form), layer["ln2_gammas"], layer["ln2_betas"], eps)
    found = {"policy": moves(x, policy)}
    last = dense(
        act(dense(act(dense(x, value, "ip_val"), "mish").reshape(-1), value, "ip1_val"), "mish"), value, "ip2_val"
    )
    found["wdl"] = softmax(last)
    if form["moves_left"]:
        hidden = act(dense(act(dense(x, w, "ip_mov"), "mish").reshape(-1), w, "ip1_mov"), "mish")
        found["moves_left"] = np.maximum(dense(hidden, w, "ip2_mov"), 0)
    return found


def relation(one: int, other: int) -> int:
    up, across = abs(one // 8 - other // 8), abs(one % 8 - other % 8)
    if one == other:
        return -1
    return int(up == 0 or across == 0 or up == across or {up, across} == {1, 2})


def norm(x: np.ndarray, gammas: np.ndarray, betas: np.ndarray, eps: float) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gammas + betas


def softmax(x: np.ndarray) -> np.ndarray:
    shares = np.exp(x - x.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def any_act(x: np.ndarray, number: int) -> np.ndarray:
    kind = ACTIVATIONS[number]
    return x / (1 + np.exp(-x)) if kind == "swish" else np.maximum(x, 0) ** 2 if kind == "relu_2" else act(x, kind)


def feed_forward(x: np.ndarray, layer: Layers, form: Layers) -> np.ndarray:
    return dense(any_act(dense(x, layer, "dense1"), form["ffn_activation"]), layer, "dense2")


def attention(x: np.ndarray, layer: Layers, w: Layers, form: Layers) -> np.ndarray:
    query, key, value = (dense(x, layer, name) for name in "qkv")
    heads, width = w["headcount"], query.shape[1] // w["headcount"]
    found = np.zeros_like(query)
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        logits = query[:, part] @ key[:, part].T / np.sqrt(width)
        if "smolgen" in layer:
            logits = logits + smolgen(x, layer["smolgen"], w, form)[head]
        found[:, part] = softmax(logits) @ value[:, part]
    return dense(found, layer, "dense")


def smolgen(x: np.ndarray, layer: Layers, w: Layers, form: Layers) -> np.ndarray:
    number = form["smolgen_activation"]
    few = (x @ layer["compress"].reshape(-1, x.shape[1]).T).reshape(-1)
    few = norm(any_act(dense(few, layer, "dense1"), number), layer["ln1_gammas"], layer["ln1_betas"], 1e-3)
    few = norm(any_act(dense(few, layer, "dense2"), number), layer["ln2_gammas"], layer["ln2_betas"], 1e-3)
    return (few.reshape(w["headcount"], -1) @ w["smolgen_w"].reshape(4096, -1).T).reshape(-1, 64, 64)


def moves(x: np.ndarray, w: Layers) -> np.ndarray:
    embedded = act(dense(x, w, "ip_pol"), "mish")
    query, key = dense(embedded, w, "ip2_pol"), dense(embedded, w, "ip3_pol")
    logits = query @ key.T / np.sqrt(query.shape[1])
    offsets = key[56:] @ w["ip4_pol_w"].reshape(4, -1).T
    promotions = logits[48:56, 56:, None] + (offsets[:, :3] + offsets[:, 3:])[None]
    return np.concatenate([logits.reshape(-1), promotions.reshape(-1)])[chess_lc0.ATTENTION]


def network(seed: int, *, new: bool = True, smolgen: bool = True, gates: bool = True, left: bool = True,
            ffn_activation: int = 0, channels: int = 8) -> Layers:  # fmt: skip
    """A random network with two encoder layers of two heads."""
    numbers = np.random.default_rng(seed)
    heads, width, wide, spread = 2, 6, 10, 5

    def layer(*shape: int) -> np.ndarray:
        return numbers.normal(0, 1.5 / np.sqrt(shape[-1]), shape).astype(np.float32).reshape(-1)

    def both(name: str, outputs: int, inputs: int) -> Layers:
        return {f"{name}_w": layer(outputs, inputs), f"{name}_b": layer(outputs) / 5}

    def ln(name: str, size: int = channels) -> Layers:
        return {f"{name}_gammas": 1 + layer(size) / 5, f"{name}_betas": layer(size) / 5}

    def ffn() -> Layers:
        return both("dense1", wide, channels) | both("dense2", channels, wide)

    def encoder() -> Layers:
        mha: Layers = both("q", width, channels) | both("k", width, channels) | both("v", width, channels)
        mha |= both("dense", channels, width)
        if smolgen:
            mha["smolgen"] = {"compress": layer(3, channels), **both("dense1", 7, 3 * 64), **ln("ln1", 7),
                              **both("dense2", heads * spread, 7), **ln("ln2", heads * spread)}  # fmt: skip
        return {"mha": mha, **ln("ln1"), "ffn": ffn(), **ln("ln2")}

    policy = both("ip_pol", 9, channels) | both("ip2_pol", 6, 9) | both("ip3_pol", 6, 9) | {"ip4_pol_w": layer(4, 6)}
    value = both("ip_val", 4, channels) | both("ip1_val", 16, 4 * 64) | both("ip2_val", 3, 16)
    weights: dict[str, Any] = {"encoder": [encoder() for _ in range(2)], "headcount": heads,
                               **both("ip_emb", channels, 112 + (4 if new else 64))}  # fmt: skip
    weights["ip_emb_w"].reshape(channels, -1)[:, 109] /= 20  # the count of plies is large
    if new:
        weights |= both("ip_emb_preproc", 64 * 4, 64 * 12) | ln("ip_emb_ln") | ln("ip_emb_ffn_ln")
        weights |= {"ip_emb_ffn": ffn(), "policy_heads": {"vanilla": policy}, "value_heads": {"winner": value}}
    else:
        weights |= policy | value
    if gates:
        weights |= {"ip_mult_gate": 1 + layer(channels, 64), "ip_add_gate": layer(channels, 64)}
    if smolgen:
        weights["smolgen_w"] = layer(4096, spread)
    if left:
        weights |= both("ip_mov", 2, channels) | both("ip1_mov", 8, 2 * 64) | both("ip2_mov", 1, 8)
        weights["ip2_mov_b"] = np.full(1, 30, np.float32)
    form = {"input": 1, "output": 2, "network": 7 if new else 6, "policy": 3, "value": 2, "moves_left": int(left),
            "default_activation": 1, "smolgen_activation": 7 if smolgen else 0, "ffn_activation": ffn_activation,
            "input_embedding": 2 if new else 1}  # fmt: skip
    return {"format": {"weights_encoding": 1, "network_format": form}, "weights": weights}
