"""Networks full of random numbers, running statistics included, made without compiling anything."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets

RandomNet = Callable[..., nets.Network]


@pytest.fixture(scope="session")
def random_net() -> RandomNet:
    """`random_net(name, game, heads=(), dtype="float32", full_board=True)`"""

    def make(
        name: str,
        game: games.Game,
        heads: tuple[nets.Head, ...] = (),
        dtype: nets.Dtype = "float32",
        full_board: bool = True,
    ) -> nets.Network:
        spec = nets.spec(name, heads)
        net = nnx.eval_shape(lambda: nets.build(spec, game, nnx.Rngs(0), dtype=dtype, full_board=full_board))
        graph, state = nnx.split(net)
        numbers = np.random.default_rng(7)

        def fill(path: tuple[Any, ...], leaf: Any) -> jax.Array:
            name = jax.tree_util.keystr(path)
            if "variance" in name or "scale" in name and len(leaf.shape) == 1:
                drawn = numbers.uniform(0.5, 1.5, leaf.shape)
            else:
                drawn = numbers.normal(size=leaf.shape) * (2 / np.prod(leaf.shape[:-1])) ** 0.5
            return jax.numpy.asarray(drawn, leaf.dtype)

        return nnx.merge(graph, jax.tree_util.tree_map_with_path(fill, state))

    return make
