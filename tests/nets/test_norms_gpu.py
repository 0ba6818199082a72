"""The norms' GPU programs, emulated: results, gradients and running statistics as by the plain version."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import nets
from tengen.nets import norms_gpu
from tengen.nets.blocks import Stream, shaped
from tengen.nets.board import BoardMask
from tengen.nets.norms import Norm
from tengen.nets.specs import Activation

pytestmark = pytest.mark.usefixtures("emulated_gpu")
BOARDS, SIDE = 4, 5


class Case(NamedTuple):
    activation: Activation
    dtype: nets.Dtype
    channels: int
    inputs: int = 96
    first: int = 0
    added: str | None = None  # "points", "boards"
    masked: bool = False
    forks: bool = False


CASES = {
    "a block's first norm, boards of two sizes": Case("relu", "bfloat16", 96, added="points", masked=True, forks=True),
    "a pooling block's regular channels": Case("mish", "float32", 64, added="boards"),
    "the channels that are pooled": Case("silu", "float32", 32, first=64),
    "the same on boards of two sizes": Case("mish", "float32", 32, first=64, masked=True),
    "the tip of the trunk": Case("relu", "float32", 96, added="points"),
    "the first block": Case("silu", "bfloat16", 40, inputs=40, forks=True),
    "regular channels on boards of two sizes": Case("silu", "float32", 64, added="boards", masked=True),
    "many channels": Case("relu", "bfloat16", 1024, inputs=1024, forks=True),
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow if number > 1 else ()) for number, case in enumerate(CASES)]
)
def test_a_norm_is_the_same_as_by_xla(quick_jit: Any, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = CASES[case]
    if chosen.channels < 1024:  # fewer threads are emulated faster, and blocks have several rows to look at
        small = dict.fromkeys(norms_gpu.SHAPES, norms_gpu.PassShape(8, 96, 2, 3, 1))
        monkeypatch.setattr(norms_gpu, "SHAPES", small)
    numbers = np.random.default_rng(0)
    size = {"points": SIDE, "boards": 1}

    def drawn(*shape: int) -> jax.Array:
        return jnp.asarray(numbers.normal(1, 2, shape), chosen.dtype)

    x = drawn(BOARDS, SIDE, SIDE, chosen.inputs)
    added = None if chosen.added is None else drawn(BOARDS, *[size[chosen.added]] * 2, chosen.channels)
    scale, shift = (jnp.asarray(numbers.uniform(0.5, 1.5, chosen.channels), jnp.float32) for _ in range(2))
    on = np.ones((BOARDS, SIDE, SIDE, 1), bool)
    on[::2, -1], on[::2, :, -1] = False, False
    board = BoardMask.of(jnp.asarray(on), full=not chosen.masked)
    weights = numbers.normal(size=(2, BOARDS, SIDE, SIDE, chosen.channels))
    part = slice(chosen.first, chosen.first + chosen.channels)

    def loss(inputs: tuple[Any, ...], kernels: bool) -> Any:
        x, added, scale, shift = inputs
        norm = Norm(chosen.channels)
        norm.kernels, norm.scale[...], norm.shift[...] = kernels, scale, shift
        if chosen.forks:
            results = Stream(x, added).shaped(norm, chosen.activation, board, train=True)
        else:
            results = (shaped(x, norm, chosen.activation, board, train=True, part=part, added=added),)
        total = sum(jnp.sum(each * weight) for each, weight in zip(results, weights, strict=False))
        return total, (results, norm.mean[...], norm.variance[...])

    assert norms_gpu.suits(x, chosen.channels, chosen.first)
    run = quick_jit(jax.value_and_grad(loss, has_aux=True), static_argnums=1)
    found, expected = (run((x, added, scale, shift), kernels) for kernels in (True, False))
    # The plain gradient is the sum of two that are rounded, and it is rounded again where the stream goes on.
    tolerance = 0.015 if chosen.dtype == "bfloat16" else 1e-5

    def close(a: jax.Array, b: jax.Array) -> None:
        wide = np.asarray(a, np.float32), np.asarray(b, np.float32)
        np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance * float(np.abs(wide[1]).max()))

    jax.tree.map(close, found, expected)


def test_arrays_that_the_programs_do_not_support() -> None:
    x = jnp.zeros((1, 1, 1, 48), jnp.bfloat16)
    assert norms_gpu.suits(x, 16, 32)
    assert not norms_gpu.suits(x, 12, 32)
    assert not norms_gpu.suits(x, 16, 4)
    assert not norms_gpu.suits(jnp.zeros((1, 1, 1, 41), jnp.bfloat16), 8)
    assert not norms_gpu.suits(jnp.zeros((1, 1, 1, 2048), jnp.bfloat16), 2048)
    huge: Any = jax.ShapeDtypeStruct((2**15, 16, 16, 2**8), jnp.bfloat16)
    assert not norms_gpu.suits(huge, 256)
