"""Between Lc0's networks and Tengen's: the same layers in another order of their numbers."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from flax import nnx

from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.interop.lc0 import encoders
from tengen.interop.lc0.layers import Layers, StoredLayer, collect, dense_from, dense_to, fill, put
from tengen.nets.building import build
from tengen.nets.counting import parameter_count
from tengen.nets.layers import Dense
from tengen.nets.lc0 import MOVES, ConvolutionPolicy, FlatHead, Lc0EncoderNetwork, Lc0Network
from tengen.nets.network import Network
from tengen.nets.specs import Dtype, Spec

_CERTAIN = -100.0  # the logit of a draw in networks that know wins and losses only
_NETWORKS = {1: "classical", 2: "SE", 3: "classical", 4: "SE"}
_ENCODERS = {encoders.OLD: "attention body", encoders.NEW: "attention body", 134: "attention body"}
_OTHER_NETWORKS = {5: "ONNX"}
_POLICIES = {1: "dense", 2: "convolution", 3: "attention"}
ACTIVATIONS = {"relu": 0, "mish": 1}
"""The activations that Lc0 has for whole networks, with its numbers."""
_SE, _CLASSICAL = 4, 3
_ATTENTION = 3  # the policy head
_WDL = 2
_FEW = 100_000  # parameters that a file may leave out


def from_lc0(net: Layers, game: Game, dtype: Dtype = "float32") -> Lc0Network | Lc0EncoderNetwork:
    """A network of Lc0 as one of Tengen, for chess. Raises TengenError, by name, for what is not supported."""
    form: Layers = net.get("format", {}).get("network_format", {})
    weights: Layers = net.get("weights", {})
    spec, weights = _spec(form, encoders.flat(weights) if form.get("network") in (encoders.NEW, 134) else weights)
    _check_size(spec, game, weights)
    made = build(spec, game, nnx.Rngs(0), dtype=dtype)
    if isinstance(made, Lc0EncoderNetwork):
        encoders.fill(made, weights)
        _last_value_from(made.value.last, weights)
        return made
    assert isinstance(made, Lc0Network)
    fill(_layers(made), weights)
    _last_value_from(made.value.layers[1], weights)
    return made


def _layers(net: Lc0Network) -> Iterator[StoredLayer]:
    """All layers but the last of the value, which is another one in networks without draws."""
    yield StoredLayer(("input",), net.stem)
    for number, block in enumerate(net.blocks):
        place = ("residual", number)
        yield StoredLayer((*place, "conv1"), block.conv1)
        yield StoredLayer((*place, "conv2"), block.conv2)
        if block.se is not None:
            yield StoredLayer((*place, "se"), block.se.squeeze, "w1", "b1")
            yield StoredLayer((*place, "se"), block.se.expand, "w2", "b2")
    if isinstance(net.policy, FlatHead):
        yield StoredLayer(("policy",), net.policy.conv)
        yield StoredLayer((), net.policy.layers[0], "ip_pol_w", "ip_pol_b")
    elif isinstance(net.policy, ConvolutionPolicy):
        yield StoredLayer(("policy1",), net.policy.conv)
        yield StoredLayer(("policy",), net.policy.moves)
    else:
        yield from encoders.policy_layers(net.policy)
    yield StoredLayer(("value",), net.value.conv)
    yield StoredLayer((), net.value.layers[0], "ip1_val_w", "ip1_val_b")
    if net.moves_left is not None:
        yield StoredLayer(("moves_left",), net.moves_left.conv)
        yield StoredLayer((), net.moves_left.layers[0], "ip1_mov_w", "ip1_mov_b")
        yield StoredLayer((), net.moves_left.layers[1], "ip2_mov_w", "ip2_mov_b", MOVES)


def _check_size(spec: Spec, game: Game, weights: Layers) -> None:
    """TengenError if the network has far more parameters than the file has numbers, before there is memory for them."""
    made = nnx.eval_shape(lambda: build(spec, game, nnx.Rngs(0)))
    there, needed = sum(map(np.size, jax.tree.leaves(weights))), parameter_count(made)
    if needed > 2 * there + _FEW:
        raise TengenError(f"its sizes do not fit together: {needed:,} parameters, but {there:,} numbers in the file")


def _last_value_from(last: Dense, weights: Layers) -> None:
    if len(weights["ip2_val_b"]) not in (1, 3):
        raise TengenError(f"its ip2_val_b has {len(weights['ip2_val_b'])} numbers, expected 1 or 3")
    if len(weights["ip2_val_b"]) == 3:
        dense_from(last, weights, "ip2_val_w", "ip2_val_b")
    else:  # tanh(x) is the win's chance minus the loss's for the logits x and -x
        kernel, bias = weights["ip2_val_w"], weights["ip2_val_b"][0]
        put(last.kernel, np.stack([kernel, 0 * kernel, -kernel], 1), "ip2_val_w")
        put(last.bias, np.array([bias, _CERTAIN, -bias]), "ip2_val_b")


def to_lc0(net: Network, name: str) -> dict[str, Any]:
    """The network as one of Lc0. Raises TengenError for networks that Lc0 cannot compute."""
    spec = net.spec
    if not isinstance(net, Lc0Network | Lc0EncoderNetwork):
        raise TengenError(
            f"{name}: Lc0 computes its own kinds of networks only; train one such as b10c128-se-lc0 for chess"
        )
    if net.folded:
        raise TengenError(f"{name}: a folded network cannot be exported: export the one that it was folded from")
    if spec.activation not in ACTIVATIONS:
        raise TengenError(f"{name}: Lc0 has no activation {spec.activation}, expected relu or mish")
    if isinstance(net, Lc0EncoderNetwork):
        weights, kind = encoders.to_weights(net)
        policy, minor = _ATTENTION, 31 if kind["network"] == encoders.NEW else 30
    else:
        assert spec.lc0 is not None
        weights = collect(_layers(net), {"residual": [{} for _ in net.blocks]})
        weights |= dense_to(net.value.layers[1], "ip2_val_w", "ip2_val_b")
        kind = {"network": _CLASSICAL if spec.lc0.excite_units is None else _SE}
        policy = next(number for number, kind in _POLICIES.items() if kind == spec.lc0.policy)
        minor = 30 if policy == _ATTENTION else 29 if spec.activation == "mish" else 21
    form = {
        "input": 1,
        "output": _WDL,
        "policy": policy,
        "value": _WDL,
        "moves_left": int(net.moves_left is not None),
        "default_activation": ACTIVATIONS[spec.activation],
        **kind,
    }
    return {
        "license": "",
        "min_version": {"major": 0, "minor": minor, "patch": 0},
        "format": {"weights_encoding": 1, "network_format": form},
        "weights": weights,
    }


def _spec(form: Layers, weights: Layers) -> tuple[Spec, Layers]:
    """The spec of a network of Lc0, and its layers, or TengenError with the name of what is not supported."""
    kind = form.get("network", 1)
    if kind not in (*_NETWORKS, *_ENCODERS):
        named = _OTHER_NETWORKS.get(kind, f"kind {kind}")
        raise TengenError(f"a network of Lc0's kind {named!r}, expected residual blocks or an attention body")
    if kind in _NETWORKS and weights.get("encoder"):
        raise TengenError("a network with residual blocks and encoder layers, expected one of both")
    if (planes := form.get("input", 1)) != 1:
        raise TengenError(f"its planes are in Lc0's input format {planes}, expected 1 (classical)")
    if weights.get("pol_encoder"):
        raise TengenError("its policy head has encoder layers, which are not supported")
    activation = next((word for word, number in ACTIVATIONS.items() if number == form.get("default_activation", 0)), "")
    if not activation:
        number = form["default_activation"]
        raise TengenError(f"its activation has the number {number} in Lc0, expected 0 (relu) or 1 (mish)")
    if (value := form.get("value", 1)) not in (1, _WDL):
        raise TengenError(f"its value head has the number {value} in Lc0, expected 1 (classical) or 2 (WDL)")
    policy = _POLICIES.get(form.get("policy", 1))
    if policy is None:
        raise TengenError(f"its policy head has the number {form['policy']} in Lc0, expected 1, 2 or 3")
    left = form.get("moves_left", 0) == 1
    heads = ["moves_left"] if left else []
    data: dict[str, Any] = {"tower": None, "layers": None, "activation": activation, "heads": heads}
    if kind in _ENCODERS:
        if policy != "attention":
            raise TengenError(f"its policy head is of the kind {policy}, expected attention with an attention body")
        found = encoders.spec_of(form, weights, activation)
        return Spec.from_dict({**data, "lc0_encoders": found}, "the network"), weights
    needed = ["input", "residual", "value", "ip1_val_b", "ip2_val_w", "ip2_val_b"]
    needed += {"dense": ["policy", "ip_pol_w"], "convolution": ["policy1", "policy"],
               "attention": ["ip_pol_b", "ip2_pol_b"]}[policy]  # fmt: skip
    needed += ["moves_left", "ip1_mov_b"] if left else []
    missing = [name for name in needed if name not in weights]
    if missing:
        raise TengenError(f"its {missing[0]} is missing")
    excite = weights["residual"][0].get("se")
    channels = _width(weights["input"])
    head = {"dense": "policy", "convolution": "policy1"}
    tower = {
        "blocks": len(weights["residual"]),
        "channels": channels,
        "excite_units": None if excite is None else len(excite.get("b1", ())),
        "policy": policy,
        "policy_channels": _width(weights[head[policy]]) if policy in head else len(weights["ip_pol_b"]),
        "key_width": len(weights["ip2_pol_b"]) if policy == "attention" else 0,
        "value_channels": _width(weights["value"]),
        "value_width": len(weights["ip1_val_b"]),
        "moves_channels": _width(weights["moves_left"]) if left else 8,
        "moves_width": len(weights["ip1_mov_b"]) if left else 128,
    }
    return Spec.from_dict({**data, "lc0": tower}, "the network"), weights


def _width(conv: Layers) -> int:
    return len(next((conv[name] for name in ("biases", "bn_means") if name in conv), ()))
