"""Lc0's network files (`.pb.gz`): a message of protocol buffers, as nested dictionaries with the names of its fields.

Layers are arrays of float32 without a shape, as in the file. Fields that are not listed here are ignored.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tengen.errors import TengenError
from tengen.files import packed
from tengen.interop import protobuf

MAGIC = 0x1C0
Encoding = Literal["linear16", "float32"]
_LINEAR16, _FLOAT16, _BFLOAT16, _FLOAT32 = 1, 2, 3, 4
_STEPS = 65535
_LAYER, _WHOLE, _TEXT, _BYTES = "layer", "whole", "text", "bytes"


def _fields_of(kind: str, first: int, *names: str) -> dict[int, tuple[str, str]]:
    return {number: (name, kind) for number, name in enumerate(names, first)}


_layers, _wholes = partial(_fields_of, _LAYER), partial(_fields_of, _WHOLE)


# Message -> number -> name and kind, which is one of the above or a message; several are allowed if it ends in *.
_MESSAGES: dict[str, dict[int, tuple[str, str]]] = {
    "Net": {
        1: ("magic", _BYTES),
        2: ("license", _TEXT),
        3: ("min_version", "Version"),
        4: ("format", "Format"),
        5: ("training_params", "Training"),
        10: ("weights", "Weights"),
    },
    "Version": _wholes(1, "major", "minor", "patch"),
    "Training": _wholes(1, "training_steps"),
    "Format": {1: ("weights_encoding", _WHOLE), 2: ("network_format", "NetworkFormat")},
    "NetworkFormat": {
        **_wholes(1, "input", "output", "network", "policy", "value", "moves_left", "default_activation"),
        **_wholes(8, "smolgen_activation", "ffn_activation", "input_embedding"),
    },
    "ConvBlock": _layers(1, "weights", "biases", "bn_means", "bn_stddivs", "bn_gammas", "bn_betas"),
    "SEunit": _layers(1, "w1", "b1", "w2", "b2"),
    "Residual": {1: ("conv1", "ConvBlock"), 2: ("conv2", "ConvBlock"), 3: ("se", "SEunit")},
    "Weights": {
        1: ("input", "ConvBlock"),
        2: ("residual", "Residual*"),
        3: ("policy", "ConvBlock"),
        **_layers(4, "ip_pol_w", "ip_pol_b"),
        6: ("value", "ConvBlock"),
        **_layers(7, "ip1_val_w", "ip1_val_b", "ip2_val_w", "ip2_val_b"),
        11: ("policy1", "ConvBlock"),
        12: ("moves_left", "ConvBlock"),
        **_layers(
            13, "ip1_mov_w", "ip1_mov_b", "ip2_mov_w", "ip2_mov_b", "ip2_pol_w", "ip2_pol_b", "ip3_pol_w", "ip3_pol_b"
        ),
        21: ("pol_encoder", _BYTES + "*"),
        **_layers(22, "ip4_pol_w"),
        **_layers(25, "ip_emb_w", "ip_emb_b"),
        27: ("encoder", "EncoderLayer*"),
        28: ("headcount", _WHOLE),
        **_layers(29, "ip_val_w", "ip_val_b", "ip_mov_w", "ip_mov_b", "ip_mult_gate", "ip_add_gate", "smolgen_w"),
        **_layers(37, "ip_emb_preproc_w", "ip_emb_preproc_b", "ip_emb_ln_gammas", "ip_emb_ln_betas"),
        41: ("ip_emb_ffn", "FFN"),
        **_layers(42, "ip_emb_ffn_ln_gammas", "ip_emb_ffn_ln_betas"),
        44: ("value_heads", "ValueHeads"),
        45: ("policy_heads", "PolicyHeads"),
    },
    "EncoderLayer": {
        1: ("mha", "MHA"),
        **_layers(2, "ln1_gammas", "ln1_betas"),
        4: ("ffn", "FFN"),
        **_layers(5, "ln2_gammas", "ln2_betas"),
    },
    "MHA": {
        **_layers(1, "q_w", "q_b", "k_w", "k_b", "v_w", "v_b", "dense_w", "dense_b"),
        9: ("smolgen", "Smolgen"),
        **_fields_of(_BYTES, 10, "rpe_q", "rpe_k", "rpe_v"),
    },
    "Smolgen": {
        **_layers(1, "compress", "dense1_w", "dense1_b", "ln1_gammas", "ln1_betas"),
        **_layers(6, "dense2_w", "dense2_b", "ln2_gammas", "ln2_betas"),
    },
    "FFN": _layers(1, "dense1_w", "dense1_b", "dense2_w", "dense2_b"),
    "PolicyHeads": {
        **_layers(1, "ip_pol_w", "ip_pol_b"),
        **_fields_of("PolicyHead", 3, "vanilla", "optimistic_st", "soft", "opponent"),
    },
    "PolicyHead": {
        **_layers(1, "ip_pol_w", "ip_pol_b", "ip2_pol_w", "ip2_pol_b", "ip3_pol_w", "ip3_pol_b", "ip4_pol_w"),
        8: ("pol_encoder", _BYTES + "*"),
    },
    "ValueHeads": _fields_of("ValueHead", 1, "winner", "q", "st"),
    "ValueHead": _layers(1, "ip_val_w", "ip_val_b", "ip1_val_w", "ip1_val_b", "ip2_val_w", "ip2_val_b"),
}


def read(path: Path | str) -> dict[str, Any]:
    """The network in a file. Raises TengenError if it is damaged, or not a network of Lc0."""
    path = Path(path)
    data = packed.read(path, "network of Lc0")
    try:
        found = _decode("Net", data, "")
    except TengenError as error:
        raise TengenError(f"{path}: not a whole network of Lc0: {error}") from None
    magic = found.get("magic", b"")
    if len(magic) != 4 or int.from_bytes(magic, "little") != MAGIC:
        raise TengenError(f"{path}: not a network of Lc0, whose file begins with the number {MAGIC:#x}")
    return found


def write(net: Mapping[str, Any], path: Path, encoding: Encoding = "linear16") -> None:
    """Writes a network, the dictionary that `read` gives; gzipped if the name ends in .gz.

    `linear16` rounds each layer to 65,536 steps between its lowest and its highest number. `float32` is exact, twice as
    large, and needs version 0.33 of Lc0: the file says so, because older ones would read nonsense.
    """
    if encoding == "float32":
        net = {**net, "min_version": {"major": 0, "minor": 33, "patch": 0}}
    data = protobuf.message([(1, np.uint32(MAGIC)), *_fields("Net", net, encoding)])
    packed.write(path, data)


def _decode(kind: str, data: bytes | memoryview, where: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    fields = protobuf.parse(data)
    for number, (name, inner) in _MESSAGES[kind].items():
        place = f"{where}.{name}".lstrip(".")
        many = inner.endswith("*")
        values = [_value(inner.removesuffix("*"), value, place) for value in fields.get(number, [])]
        if values:
            found[name] = values if many else values[-1]
    return found


def _value(kind: str, value: int | memoryview, place: str) -> Any:
    if (kind == _WHOLE) != isinstance(value, int):
        raise TengenError(f"{place} is of another type than in Lc0's networks")
    if isinstance(value, int):
        return value
    if kind == _LAYER:
        return _layer(value, place)
    if kind in (_TEXT, _BYTES):
        return bytes(value).decode(errors="replace") if kind == _TEXT else bytes(value)
    return _decode(kind, value, place)


def _layer(data: memoryview, place: str) -> np.ndarray:
    """min_val 1, max_val 2, params 3, encoding 4."""
    fields = protobuf.parse(data)
    low, high, params = (fields.get(number, [b""])[-1] for number in (1, 2, 3))
    encoding = fields.get(4, [_LINEAR16])[-1]
    if isinstance(params, int) or encoding not in (_LINEAR16, _FLOAT16, _BFLOAT16, _FLOAT32):
        raise TengenError(f"{place}: a layer in an encoding that is not known ({encoding})")
    if any(isinstance(end, int) or len(end) not in (0, 4) for end in (low, high)):
        raise TengenError(f"{place}: expected one number of 32 bits as the lowest and the highest of a layer")
    size = 4 if encoding == _FLOAT32 else 2
    if len(params) % size:
        raise TengenError(f"{place}: {len(params)} bytes, expected {size} per number")
    if encoding == _LINEAR16:
        least, most = (np.frombuffer(bytes(end), "<f4") if end else np.zeros(1, np.float32) for end in (low, high))
        share = np.frombuffer(params, "<u2").astype(np.float32) / np.float32(_STEPS)
        with np.errstate(over="ignore", invalid="ignore"):  # looked at below
            found = least * (1 - share) + most * share
    elif encoding == _BFLOAT16:
        found = (np.frombuffer(params, "<u2").astype(np.uint32) << 16).view(np.float32)
    else:
        found = np.frombuffer(params, "<f2" if encoding == _FLOAT16 else "<f4").astype(np.float32)
    if not np.isfinite(found).all():
        raise TengenError(f"{place}: holds numbers that are not finite")
    return found


def _fields(kind: str, message: Mapping[str, Any], encoding: Encoding) -> list[tuple[int, protobuf.Value]]:
    found: list[tuple[int, protobuf.Value]] = []
    for number, (name, inner) in _MESSAGES[kind].items():
        values = message.get(name)
        for value in [] if values is None else values if inner.endswith("*") else [values]:
            found.append((number, _encoded(inner.removesuffix("*"), value, encoding)))
    return found


def _encoded(kind: str, value: Any, encoding: Encoding) -> protobuf.Value:
    if kind in (_WHOLE, _TEXT, _BYTES):
        return value
    if kind != _LAYER:
        return protobuf.message(_fields(kind, value, encoding))
    numbers = np.asarray(value, np.float32).reshape(-1)
    low, high = (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 0.0)
    if encoding == "float32":
        return protobuf.message([(1, low), (2, high), (3, numbers.astype("<f4").tobytes()), (4, _FLOAT32)])
    steps = np.rint((numbers.astype(np.float64) - low) / ((high - low) or 1) * _STEPS)
    return protobuf.message([(1, low), (2, high), (3, steps.astype("<u2").tobytes())])
