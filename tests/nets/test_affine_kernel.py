"""The GPU program for scale, shift and activation."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.nets import gpu
from tengen.nets.spec import Activation


def test_the_same_as_by_hand_where_rows_do_not_fill_the_last_program() -> None:
    numbers = np.random.default_rng(0)
    x = numbers.normal(size=(3, 5, 5, 96)).astype(np.float32)
    scale, shift = numbers.normal(size=(2, 96)).astype(np.float32)
    run = jax.jit(lambda *args: gpu.affine(*args, activation="relu"))
    assert gpu.suits_affine(jnp.asarray(x))
    np.testing.assert_allclose(run(x, scale, shift), np.maximum(x * scale + shift, 0), rtol=1e-5, atol=1e-6)
    assert not gpu.suits_affine(jnp.zeros((1, 1, 1, 40)))
    huge: Any = jax.ShapeDtypeStruct((2**15, 16, 16, 2**8), jnp.bfloat16)
    assert not gpu.suits_affine(huge)


def test_where_a_folded_network_may_use_it() -> None:
    """Before each of two blocks and before the heads, unless it is told not to."""
    game = games.make("go", size=9)

    def programs(kernels: bool) -> int:
        net = nnx.eval_shape(lambda: nets.fold(nets.build(nets.spec("b2c96"), game, nnx.Rngs(0)), kernels=kernels))
        graph, state = nnx.split(net)
        inputs: Any = jax.ShapeDtypeStruct((4, *game.planes_shape), bool), jax.ShapeDtypeStruct((4, 11), jnp.float32)
        look = jax.jit(lambda state, *inputs: nnx.merge(graph, state)(*inputs))
        return str(look.trace(state, *inputs).jaxpr).count("name=affine")

    assert [programs(kernels) for kernels in (True, False)] == [3, 0]


@pytest.mark.parametrize("activation", ["relu", "mish", "silu"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_triton_takes_it(lower_for_gpu: Any, activation: Activation, dtype: str) -> None:
    x, weights = jax.ShapeDtypeStruct((3, 5, 5, 96), dtype), jax.ShapeDtypeStruct((96,), jnp.float32)
    run = partial(gpu.affine, activation=activation)
    assert lower_for_gpu(run, x, weights, weights).count("xla.gpu.triton") == 1
