"""The GPU program for all heads says what the plain heads say, and is what a GPU would run."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.nets import head_kernel
from tengen.nets.board import Board


@pytest.mark.parametrize(("size", "heads"), [(3, ()), (12, ("ownership", "opponent_policy"))])
def test_the_same_outputs(random_net: Any, quick_jit: Any, size: int, heads: tuple[nets.Head, ...]) -> None:
    """On boards of one tile and of two."""
    net = random_net("b1c16", games.make("go", size=size), heads)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(2, size, size, 16)), jnp.float32)
    board = Board.of(jnp.ones((2, size, size, 1), bool), full=True)

    graph, state = nnx.split(net)

    @quick_jit
    def both(state: Any, x: jax.Array) -> tuple[nets.Outputs, nets.Outputs]:
        heads: Any = nets.fold(nnx.merge(graph, state)).heads
        run = partial(head_kernel.run, side=board.side, activation="relu", interpret=True)
        return heads(x, board, False), heads.from_sums(x, run(x, heads.weights()), board)

    expected, found = both(state, x)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), found, expected)
    assert (found.ownership is not None) == ("ownership" in heads)


def test_what_is_compiled_for_a_gpu() -> None:
    """One program before each block, one for the heads. Lowering finds what Triton cannot express, without a GPU."""
    game = games.make("go", size=9)
    net = nnx.eval_shape(lambda: nets.fold(nets.build(nets.spec("b2c96"), game, nnx.Rngs(0))))
    plain = nnx.eval_shape(lambda: nets.fold(nets.build(nets.spec("b2c96"), game, nnx.Rngs(0)), kernels=False))
    for network, programs in ((net, 3), (plain, 0)):
        graph, state = nnx.split(network)
        look = jax.jit(lambda state, *inputs, graph=graph: nnx.merge(graph, state)(*inputs))
        inputs = jax.ShapeDtypeStruct((4, *game.planes_shape), bool), jax.ShapeDtypeStruct((4, 11), jnp.float32)
        text = look.trace(state, *inputs).lower(lowering_platforms=("cuda",)).as_text()
        assert text.count("triton") == programs
