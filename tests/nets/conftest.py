"""Networks full of random numbers, running statistics included, made without compiling anything, and a quick `jit`."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets


@pytest.fixture(scope="session")
def quick_jit() -> Callable[..., Any]:
    """`jax.jit` for what runs once on few numbers: compiling is what takes long."""
    return partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@pytest.fixture(scope="session")
def look(quick_jit: Callable[..., Any]) -> Callable[..., nets.Outputs]:
    """`look(net, planes, scalars)`: what the network says, compiled once per kind of network and shape."""

    @partial(quick_jit, static_argnums=0)
    def call(graph: Any, state: Any, planes: jax.Array, scalars: jax.Array) -> nets.Outputs:
        return nnx.merge(graph, state)(planes, scalars)

    return lambda net, planes, scalars: call(*nnx.split(net), planes, scalars)


@pytest.fixture(scope="session")
def random_net() -> Callable[..., nets.Network]:
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
            if "variance" in name or ("scale" in name and len(leaf.shape) == 1):
                drawn = numbers.uniform(0.5, 1.5, leaf.shape)
            else:
                drawn = numbers.normal(size=leaf.shape) * (2 / np.prod(leaf.shape[:-1])) ** 0.5
            return jax.numpy.asarray(drawn, leaf.dtype)

        return nnx.merge(graph, jax.tree_util.tree_map_with_path(fill, state))

    return make
