"""JAX functions as ONNX graphs: the same numbers, for batches of any size."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.errors import TengenError
from tengen.interop.onnx.exchange import trace

ORDER = np.array([2, 0, 1])
WEIGHTS = np.random.default_rng(0).normal(size=(3, 3, 4, 6)).astype(np.float32)


def attention(x: jax.Array) -> jax.Array:
    flat = x.reshape(len(x), -1, 4)
    return jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", flat, flat)) @ flat


def strided(x: jax.Array) -> jax.Array:
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, WEIGHTS, (2, 1), "VALID", dimension_numbers=numbers)


def layer_norm(x: jax.Array) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(jnp.var(x, -1, keepdims=True) + 1e-3)


# Arguments are [batch, 5, 3, 4].
FUNCTIONS: dict[str, Callable[[jax.Array], Any]] = {
    "attention": attention,
    "layer norm": layer_norm,
    "convolution": strided,
    "order": lambda x: x[:, :, ORDER],
    "order in front": lambda x: jnp.swapaxes(x, 1, 2)[:, ORDER][:, :, ::-1, 1:3],
    "one column": lambda x: x[:, 2, :, 1],
    "parts": lambda x: jnp.concatenate(jnp.split(x, 2, -1)[::-1], -1),
    "activations": lambda x: jax.nn.mish(x) + jax.nn.selu(x) * jax.nn.gelu(x) - jax.nn.softplus(x),
    "mask": lambda x: jnp.where((x > 0) & (jnp.arange(4) != 2) | (x <= -1), x, -1e9),
    "any and all": lambda x: jnp.stack([(x > 1).any((1, 2)), (x > -1).all((1, 2))], 1).astype(jnp.float32),
    "pad": lambda x: jnp.pad(x > 0, ((0, 0), (1, 2), (0, 0), (0, 3))).astype(jnp.float32),
    "best": lambda x: jnp.argmax(x, 2).astype(jnp.float32) + jnp.cumsum(x, 2).max(2),
    "constant": lambda x: jnp.broadcast_to(jnp.arange(4.0) ** 2, (len(x), 4)),
    "rows": lambda x: x.reshape(-1, 4).sum(-1).reshape(len(x), 15).clip(-0.5, 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_numbers_for_any_batch(name: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    function = FUNCTIONS[name]
    data = trace(lambda x: {"out": function(x)}, {"x": ((5, 3, 4), "float32")}).file("test", {})
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(1).normal(size=(6, 5, 3, 4)).astype(np.float32)
    (found,) = session.run(None, {"x": x})
    np.testing.assert_allclose(found, function(jnp.asarray(x)), atol=1e-5)
    np.testing.assert_allclose(session.run(None, {"x": x[:2]})[0], found[:2], atol=1e-5)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: jnp.sort(x), "JAX's operation sort, which the export to ONNX does not know"),
        (lambda x: x / len(x), "computes with the size of the batch"),
        (lambda x: x[:1] + x, "mixes the positions of a batch"),
    ],
)
def test_what_onnx_cannot_express_is_refused(function: Callable[[jax.Array], Any], message: str) -> None:
    with pytest.raises(TengenError, match=message):
        trace(lambda x: {"out": function(x)}, {"x": ((3,), "float32")})
