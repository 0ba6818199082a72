"""A tiny network of Go, rows for it, and its learner, compiled quickly."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets, train
from tengen.games.core import Game
from tests.helpers.train_samples import QUICK, random_rows, tiny_settings


@pytest.fixture(scope="session")
def game() -> Game:
    return games.make("go", size=3)


@pytest.fixture(scope="session")
def rows(game: Game) -> dict[str, jax.Array]:
    return {name: jnp.asarray(values) for name, values in random_rows(game, 32, nets.possible_heads(game)).items()}


@pytest.fixture(scope="session")
def net(game: Game) -> nets.Network:
    return nets.build(nets.spec("b1c4-nogp", nets.possible_heads(game)), game, nnx.Rngs(0), dtype="bfloat16")


@pytest.fixture(scope="session")
def learner(game: Game, net: nets.Network) -> train.Learner:
    return train.Learner(net, game, tiny_settings(), compiler_options=QUICK)


@pytest.fixture
def same() -> Callable[[Any, Any], None]:
    """`same(a, b)`: two pytrees hold the same numbers."""

    def check(found: Any, expected: Any) -> None:
        jax.tree.map(lambda a, b: np.testing.assert_array_equal(np.asarray(a), np.asarray(b)), found, expected)

    return check
