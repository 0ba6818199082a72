"""Layers between Lc0's files and Tengen's networks. A network lists its layers once, for reading and for writing."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tengen.errors import TengenError
from tengen.games import chess_lc0
from tengen.nets.layers import Conv, Dense
from tengen.nets.lc0 import INPUTS, LayerNorm, NormedConv
from tengen.nets.norms import EPSILON, Norm

COUNT = int(np.flatnonzero(INPUTS == chess_lc0.RULE_50)[0])
"""Tengen's channel of plies since a capture. Lc0's engine gives its networks the count, Tengen the count divided by
99."""
Layers = Mapping[str, Any]
_INPUT = "input"  # the convolution of the planes, which have another order in Lc0
_EPSILON = 1e-5  # of Lc0's norms


class StoredLayer(NamedTuple):
    """A layer of Tengen's and its place in a file of Lc0's."""

    place: tuple[str | int, ...]  # of the message
    layer: Dense | LayerNorm | NormedConv | Conv
    kernel: str = "weights"
    bias: str | None = "biases"
    scale: float = 1.0  # Lc0's numbers divided by Tengen's


def fill(layers: Iterable[StoredLayer], weights: Layers) -> None:
    """Sets the parameters of layers to those in a file."""
    for place, layer, kernel, bias, scale in layers:
        message: Any = weights
        where = ".".join(map(str, place))
        for step in place:
            message = message[step] if isinstance(step, int) else message.get(step, {})
        if isinstance(layer, Dense):
            dense_from(layer, message, kernel, bias, where, 1 / scale)
        elif isinstance(layer, LayerNorm):
            put(layer.scale, message.get(kernel, np.zeros(0)), f"{where} {kernel}")
            put(layer.shift, message.get(bias, np.zeros(0)), f"{where} {bias}")
        elif isinstance(layer, Conv):
            put(layer.kernel, _kernel(message, layer, where), where)
            put(layer.bias, message.get(bias, np.zeros(layer.kernel.shape[-1])), where)
        else:
            _conv_from(layer, message, where)


def collect(layers: Iterable[StoredLayer], found: dict[str, Any]) -> dict[str, Any]:
    """Adds layers to a message of Lc0's, and returns it. Lists of messages must be there."""
    for place, layer, kernel, bias, scale in layers:
        message: Any = found
        for step in place:
            message = message[step] if isinstance(step, int) else message.setdefault(step, {})
        if isinstance(layer, Dense):
            message |= dense_to(layer, kernel, bias, scale)
        elif isinstance(layer, LayerNorm):
            message |= {kernel: numbers(layer.scale), bias: numbers(layer.shift)}
        elif isinstance(layer, Conv):
            message |= {kernel: numbers(layer.kernel).transpose(3, 2, 0, 1), bias: numbers(layer.bias)}
        else:
            message |= _conv_to(layer, first=place == (_INPUT,))
    return found


def dense_from(
    layer: Dense, weights: Layers, kernel: str, bias: str | None, where: str = "", scale: float = 1.0
) -> None:
    inputs, outputs = layer.kernel.shape
    found = weights.get(kernel, np.zeros(0))
    if len(found) != inputs * outputs:
        raise TengenError(f"its {where} {kernel} has {len(found):,} numbers, expected {outputs} x {inputs}")
    put(layer.kernel, found.reshape(outputs, inputs).T * scale, kernel)
    if bias is not None:
        put(layer.bias, weights.get(bias, np.zeros(outputs)) * scale, bias)


def dense_to(layer: Dense, kernel: str, bias: str | None, scale: float = 1.0) -> dict[str, np.ndarray]:
    found = {kernel: numbers(layer.kernel).T * scale}
    return found if bias is None else found | {bias: numbers(layer.bias) * scale}


def numbers(parameter: Any) -> np.ndarray:
    return np.array(parameter[...], np.float32)


def put(parameter: Any, values: np.ndarray, where: str) -> None:
    if parameter.shape != values.shape:
        raise TengenError(f"its {where} has the shape {list(values.shape)}, expected {list(parameter.shape)}")
    parameter[...] = values.astype(np.float32)


def _conv_from(layer: NormedConv, weights: Layers, where: str) -> None:
    kernel = _kernel(weights, layer.conv, where)
    if where == _INPUT:
        kernel = kernel[:, :, INPUTS].copy()
        kernel[:, :, COUNT] *= chess_lc0.RULE_50_SCALE
    put(layer.conv.kernel, kernel, where)
    width = kernel.shape[3]
    # A file without norms has a bias in their place.
    without = {"bn_means": 0.0, "bn_stddivs": 1 - _EPSILON, "bn_gammas": 1.0, "bn_betas": 0.0, "biases": 0.0}
    found = [np.asarray(weights.get(name, np.full(width, usual)), np.float64) for name, usual in without.items()]
    for name, values in zip(without, found, strict=True):
        if len(values) != width:
            raise TengenError(f"its {where}.{name} has {len(values):,} numbers, expected {width}")
    mean, variance, scale, shift, bias = found
    if (variance + min(EPSILON, _EPSILON) <= 0).any():
        raise TengenError(f"its {where}.bn_stddivs holds a variance that is not positive")
    scale = scale * np.sqrt((variance + EPSILON) / (variance + _EPSILON))
    norm = layer.norm
    assert isinstance(norm, Norm)
    parameters = (norm.mean, norm.variance, norm.scale, norm.shift)
    for parameter, values in zip(parameters, (mean - bias, variance, scale, shift), strict=True):
        put(parameter, values, where)


def _conv_to(layer: NormedConv, first: bool) -> dict[str, np.ndarray]:
    """Weights and biases that contain the norm."""
    assert isinstance(layer.norm, Norm)
    scale, shift = (np.asarray(part, np.float32) for part in layer.norm.affine())
    kernel = numbers(layer.conv.kernel) * scale
    if first:
        kernel[:, :, COUNT] /= chess_lc0.RULE_50_SCALE
        kernel = kernel[:, :, np.argsort(INPUTS)]
    return {"weights": kernel.transpose(3, 2, 0, 1), "biases": shift}


def _kernel(weights: Layers, conv: Conv, where: str) -> np.ndarray:
    """[side, side, inputs, outputs]."""
    side, _, inputs, outputs = conv.kernel.shape
    found = weights.get("weights", np.zeros(0))
    if len(found) != math.prod(conv.kernel.shape):
        raise TengenError(f"its {where} has {len(found):,} numbers, expected {outputs} x {inputs} x {side} x {side}")
    return found.reshape(outputs, inputs, side, side).transpose(2, 3, 1, 0)
