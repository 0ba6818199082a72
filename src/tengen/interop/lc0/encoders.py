"""Between Lc0's networks with encoder layers and Tengen's."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tengen.errors import TengenError
from tengen.games import chess_lc0
from tengen.interop.lc0 import layers
from tengen.interop.lc0.layers import COUNT, Layers, StoredLayer, dense_from, dense_to, numbers, put
from tengen.nets.lc0 import INPUTS, MOVES, AttentionPolicy, FeedForward, Lc0EncoderNetwork

OLD, NEW = 6, 7  # Lc0's kinds of networks: with one head of each kind, and with several
_MAP, _DENSE = 1, 2  # its kinds of embeddings
_ACTIVATIONS = {1: "mish", 2: "relu", 7: "silu", 8: "relu_2"}  # 0: that of the whole network
_POLICY_LAYERS = tuple(f"ip{number}_pol_{part}" for number in ("", 2, 3, 4) for part in "wb")
_VALUE_LAYERS = tuple(f"ip{number}_val_{part}" for number in ("", 1, 2) for part in "wb")


def flat(weights: Layers) -> Layers:
    """The layers with those of the main heads among them, as in files with one head of each kind."""
    heads, values = weights.get("policy_heads", {}), weights.get("value_heads", {})
    if "vanilla" not in heads or "winner" not in values:
        missing = "value_heads.winner" if "vanilla" in heads else "policy_heads.vanilla"
        raise TengenError(f"its {missing} is missing")
    return {**weights, **heads, **heads["vanilla"], **values["winner"]}


def others(weights: Layers) -> list[str]:
    """The names of heads that are left out: Tengen has one of each kind."""
    found = [*weights.get("policy_heads", {}).items(), *weights.get("value_heads", {}).items()]
    return [name for name, head in found if isinstance(head, Mapping) and name not in ("vanilla", "winner")]


def spec_of(form: Layers, weights: Layers, activation: str) -> dict[str, Any]:
    """`Spec.lc0_encoders` of a network, whose layers are `flat`, as plain data."""
    mixed = form.get("input_embedding", _MAP)
    embedding = {_MAP: "map", _DENSE: "dense"}.get(_MAP if form["network"] == OLD else mixed)
    if embedding is None:
        raise TengenError(f"its embedding has the number {mixed} in Lc0, expected 1 (a map) or 2 (dense)")
    needed = ["encoder", "headcount", "ip_emb_b", "ip_pol_b", "ip2_pol_b", "ip_val_b", "ip1_val_b"]
    needed += ["ip2_val_w", "ip2_val_b"]
    needed += ["ip_emb_preproc_b", "ip_emb_ffn"] if embedding == "dense" else []
    needed += ["ip_mov_b", "ip1_mov_b", "ip2_mov_b"] if form.get("moves_left", 0) == 1 else []
    if missing := [name for name in needed if name not in weights]:
        raise TengenError(f"its {missing[0]} is missing")
    attention: list[Layers] = [layer.get("mha", {}) for layer in weights["encoder"]]
    first = attention[0]
    if any(name in each for each in attention for name in ("rpe_q", "rpe_k", "rpe_v")):
        raise TengenError("its encoder layers have relative positions (rpe), which are not supported")
    if len({"smolgen" in each for each in attention}) > 1:
        raise TengenError("some of its encoder layers have smolgen and some do not, which is not supported")
    channels, smolgen = len(weights["ip_emb_b"]), first.get("smolgen")
    dense = embedding == "dense"
    return {
        "layers": len(weights["encoder"]),
        "channels": channels,
        "width": len(first.get("q_b", ())),
        "heads": weights["headcount"],
        "ffn_width": len(weights["encoder"][0].get("ffn", {}).get("dense1_b", ())),
        "ffn_activation": _activation(form, "ffn_activation", activation),
        "embedding": embedding,
        "around_width": len(weights["ip_emb_preproc_b"]) // 64 if dense else 0,
        "embedding_ffn_width": len(weights["ip_emb_ffn"].get("dense1_b", ())) if dense else 0,
        "gates": "ip_mult_gate" in weights and "ip_add_gate" in weights,
        "smolgen": None
        if smolgen is None
        else {
            "channels": len(smolgen.get("compress", ())) // max(channels, 1),
            "width": len(smolgen.get("dense1_b", ())),
            "outputs": len(smolgen.get("dense2_b", ())) // max(weights["headcount"], 1),
            "activation": _activation(form, "smolgen_activation", activation),
        },
        "policy_channels": len(weights["ip_pol_b"]),
        "key_width": len(weights["ip2_pol_b"]),
        "value_channels": len(weights["ip_val_b"]),
        "value_width": len(weights["ip1_val_b"]),
        "moves_channels": len(weights.get("ip_mov_b", range(8))),
        "moves_width": len(weights.get("ip1_mov_b", range(128))),
    }


def _activation(form: Layers, name: str, usual: str) -> str:
    number = form.get(name, 0)
    if number != 0 and number not in _ACTIVATIONS:
        raise TengenError(f"its {name} has the number {number} in Lc0, expected 1 (mish), 2 (relu), 7 (swish) or 8")
    return _ACTIVATIONS.get(number, usual)


def _layers(net: Lc0EncoderNetwork) -> Iterator[StoredLayer]:
    """All layers that are stored as they are, apart from the embedding and the last layer of the value."""
    embedding = net.embedding
    if embedding.around is not None:
        yield StoredLayer((), embedding.around, "ip_emb_preproc_w", "ip_emb_preproc_b")
    if embedding.norm is not None:
        yield StoredLayer((), embedding.norm, "ip_emb_ln_gammas", "ip_emb_ln_betas")
    if embedding.ffn is not None and embedding.ffn_norm is not None:
        yield from _feed_forward(("ip_emb_ffn",), embedding.ffn)
        yield StoredLayer((), embedding.ffn_norm, "ip_emb_ffn_ln_gammas", "ip_emb_ffn_ln_betas")
    for number, encoder in enumerate(net.encoders):
        at = ("encoder", number)
        attention = (*at, "mha")
        for name, layer in (("q", encoder.query), ("k", encoder.key), ("v", encoder.value), ("dense", encoder.out)):
            yield StoredLayer(attention, layer, f"{name}_w", f"{name}_b")
        if (smolgen := encoder.smolgen) is not None:
            where = (*attention, "smolgen")
            yield StoredLayer(where, smolgen.compress, "compress", None)
            yield StoredLayer(where, smolgen.dense1, "dense1_w", "dense1_b")
            yield StoredLayer(where, smolgen.norm1, "ln1_gammas", "ln1_betas")
            yield StoredLayer(where, smolgen.dense2, "dense2_w", "dense2_b")
            yield StoredLayer(where, smolgen.norm2, "ln2_gammas", "ln2_betas")
        yield StoredLayer(at, encoder.norm1, "ln1_gammas", "ln1_betas")
        yield from _feed_forward((*at, "ffn"), encoder.ffn)
        yield StoredLayer(at, encoder.norm2, "ln2_gammas", "ln2_betas")
    if net.spread is not None:
        yield StoredLayer((), net.spread, "smolgen_w", None)
    yield from policy_layers(net.policy)
    yield StoredLayer((), net.value.squares, "ip_val_w", "ip_val_b")
    yield StoredLayer((), net.value.hidden, "ip1_val_w", "ip1_val_b")
    if (left := net.moves_left) is not None:
        yield StoredLayer((), left.squares, "ip_mov_w", "ip_mov_b")
        yield StoredLayer((), left.hidden, "ip1_mov_w", "ip1_mov_b")
        yield StoredLayer((), left.last, "ip2_mov_w", "ip2_mov_b", MOVES)


def policy_layers(policy: AttentionPolicy) -> Iterator[StoredLayer]:
    """Those of a policy by attention, which networks with and without encoders have."""
    for name, layer in (("ip_pol", policy.embedding), ("ip2_pol", policy.query), ("ip3_pol", policy.key)):
        yield StoredLayer((), layer, f"{name}_w", f"{name}_b")
    yield StoredLayer((), policy.promotion, "ip4_pol_w", None)


def _feed_forward(place: tuple[str | int, ...], ffn: FeedForward) -> Iterator[StoredLayer]:
    yield StoredLayer(place, ffn.dense1, "dense1_w", "dense1_b")
    yield StoredLayer(place, ffn.dense2, "dense2_w", "dense2_b")


def fill(net: Lc0EncoderNetwork, weights: Layers) -> None:
    """Sets the parameters of a network, all but the last layer of the value, to Lc0's `flat` layers."""
    layers.fill(_layers(net), weights)
    embedding = net.embedding
    dense_from(embedding.dense, weights, "ip_emb_w", "ip_emb_b")
    kernel = numbers(embedding.dense.kernel)
    kernel[: len(INPUTS)] = kernel[INPUTS]
    kernel[COUNT] *= chess_lc0.RULE_50_SCALE
    put(embedding.dense.kernel, kernel, "ip_emb_w")
    if embedding.factor is not None and embedding.addend is not None:
        for parameter, name in ((embedding.factor, "ip_mult_gate"), (embedding.addend, "ip_add_gate")):
            if weights[name].size != parameter[...].size:
                raise TengenError(f"its {name} has {weights[name].size:,} numbers, expected {parameter[...].size:,}")
            put(parameter, weights[name].reshape(-1, 64).T, name)


def to_weights(net: Lc0EncoderNetwork) -> tuple[dict[str, Any], dict[str, int]]:
    """The layers in the form of Lc0's files, and what they say about their kind."""
    body = net.spec.lc0_encoders
    assert body is not None
    found = layers.collect(_layers(net), {"encoder": [{} for _ in net.encoders], "headcount": body.heads})
    found |= dense_to(net.value.last, "ip2_val_w", "ip2_val_b")
    embedding = net.embedding
    columns = numbers(embedding.dense.kernel)
    columns[COUNT] /= chess_lc0.RULE_50_SCALE
    columns[: len(INPUTS)] = columns[np.argsort(INPUTS)]
    found |= {"ip_emb_w": columns.T, "ip_emb_b": numbers(embedding.dense.bias)}
    if embedding.factor is not None and embedding.addend is not None:
        found |= {"ip_mult_gate": numbers(embedding.factor).T, "ip_add_gate": numbers(embedding.addend).T}
    by_name = {word: number for number, word in _ACTIVATIONS.items()}
    dense = body.embedding == "dense"
    form = {
        "network": NEW if dense else OLD,
        "input_embedding": _DENSE if dense else _MAP,
        "ffn_activation": by_name[body.ffn_activation],
        "smolgen_activation": 0 if body.smolgen is None else by_name[body.smolgen.activation],
    }
    if dense:
        found["policy_heads"] = {"vanilla": {name: found.pop(name) for name in _POLICY_LAYERS if name in found}}
        found["value_heads"] = {"winner": {name: found.pop(name) for name in _VALUE_LAYERS}}
    return found, form
