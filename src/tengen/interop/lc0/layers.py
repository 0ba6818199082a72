"""Dense layers between Lc0's files and Tengen's networks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tengen.errors import TengenError
from tengen.games import chess_lc0
from tengen.nets.layers import Dense
from tengen.nets.lc0 import INPUTS

COUNT = int(np.flatnonzero(INPUTS == chess_lc0.RULE_50)[0])
"""Tengen's channel of plies since a capture."""
Layers = Mapping[str, Any]


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
