"""States as rows of words."""

from typing import Any

import jax
import numpy as np
import pytest

from recording import jit, make
from tengen.games import Game
from tengen.search import packing
from tengen.search.tree import node_shape

GAMES = [
    ("tic_tac_toe", {}),
    ("connect_four", {}),
    ("othello", {}),
    ("hex", {"size": 5, "swap": True}),
    ("go", {"size": 5, "ko": "simple"}),
    ("go", {"size": 9}),
    ("hironaka", {"dimension": 3}),
    pytest.param("pgx:tic_tac_toe", {}, marks=pytest.mark.slow),
]
TYPES = ["bool", "int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32"]


def round_trip(state: Any) -> Any:
    return packing.unpack(packing.pack(state), state)


def assert_same_bits(state: Any, other: Any) -> None:
    assert jax.tree.structure(state) == jax.tree.structure(other)
    for one, two in zip(jax.tree.leaves(state), jax.tree.leaves(other), strict=True):
        one, two = np.asarray(one), np.asarray(two)
        assert (one.shape, one.dtype) == (two.shape, two.dtype)
        assert one.tobytes() == two.tobytes()


def bits(shape: Any, rng: np.random.Generator) -> np.ndarray:
    """Any content that such an array can have."""
    if shape.dtype == bool:
        return rng.integers(2, size=shape.shape).astype(bool)
    size = int(np.prod(shape.shape)) * shape.dtype.itemsize
    return np.frombuffer(rng.bytes(size), shape.dtype).reshape(shape.shape)


@pytest.mark.parametrize(("name", "options"), GAMES, ids=lambda value: value if isinstance(value, str) else "")
def test_every_games_nodes_come_back(name: str, options: dict[str, Any]) -> None:
    game: Game = make(name, **options)
    shapes = node_shape(game)
    there_and_back = jit(jax.vmap(lambda state: (packing.pack(state), round_trip(state))))
    rng = np.random.default_rng(0)
    states = jax.tree.map(lambda shape: np.stack([bits(shape, rng) for _ in range(50)]), shapes)
    packed, back = there_and_back(states)
    assert packed.shape == (50, packing.words(shapes))
    assert packed.dtype == np.uint32
    assert_same_bits(states, back)


def test_arrays_of_every_type_and_size_come_back() -> None:
    rng, sizes = np.random.default_rng(1), [(), (0,), *((size,) for size in range(1, 10)), (3, 5), (2, 0, 3)]
    shapes = {name: [jax.ShapeDtypeStruct(size, np.dtype(name)) for size in sizes] for name in TYPES}
    state = jax.tree.map(lambda shape: bits(shape, rng), shapes)
    packed, back = jit(lambda state: (packing.pack(state), round_trip(state)))(state)
    assert packed.shape == (packing.words(shapes),)
    assert_same_bits(state, back)
