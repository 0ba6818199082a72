"""Towers with attention: boards of several sizes, folding, learning, and beginning with a saved one.

Their numbers are compared with a slow computation in tests/interop/katago/test_network.py.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.errors import OptionError
from tengen.nets import growing, saving
from tengen.nets.specs import Spec

SIZE = 4


def spec_of(**changes: Any) -> Spec:
    """Two nested blocks, the second of which has attention."""
    plain = nets.spec("b2c8nbt-nogp-silu", ("ownership", "score")).to_dict()
    attention = {"blocks": [2], "heads": 4, "kv_heads": 2, "key_width": 4, "value_width": 3, "turning": "learned",
                 "base": 100.0, "dense_width": 6}  # fmt: skip
    plain["tower"] |= {"attention": attention | changes, "tip_norm": "board", "pass_units": 8}
    return Spec.from_dict(plain)


@pytest.fixture(scope="module")
def net() -> nets.Network:
    return nets.build(spec_of(), games.make("go", size=SIZE), nnx.Rngs(0), dtype="float32")


def seen(side: int = SIZE) -> tuple[np.ndarray, np.ndarray]:
    """Positions on boards of SIZE x SIZE in the corner of planes of that side, with noise outside the board."""
    rng = np.random.default_rng(0)
    inside, scalars = rng.random((3, SIZE, SIZE, 12)) < 0.4, rng.normal(size=(3, 11)).astype(np.float32)
    planes = rng.random((3, side, side, 12)) < 0.5
    planes[:, :SIZE, :SIZE] = inside
    planes[..., 0] = False
    planes[:, :SIZE, :SIZE, 0] = True
    return planes, scalars


def test_a_small_board_in_a_large_one_and_a_folded_network(net: nets.Network) -> None:
    alone = net(*seen())
    masked = nnx.merge(*nnx.split(net))
    masked.full_board = False
    padded = masked(*seen(SIZE + 2))
    np.testing.assert_allclose(padded.value, alone.value, atol=1e-5)
    assert padded.ownership is not None
    assert alone.ownership is not None
    np.testing.assert_allclose(padded.ownership[:, :SIZE, :SIZE], alone.ownership, atol=1e-5)
    corner = padded.policy[:, :-1].reshape(3, SIZE + 2, SIZE + 2)[:, :SIZE, :SIZE].reshape(3, -1)
    np.testing.assert_allclose(corner, alone.policy[:, :-1], atol=1e-5)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-4), nets.fold(net)(*seen()), alone)


def test_everything_learns(net: nets.Network) -> None:
    graph, state, rest = nnx.split(net, nnx.Param, ...)
    planes, scalars = seen()

    def loss(state: Any) -> jax.Array:
        outputs = nnx.merge(graph, state, rest)(planes, scalars)
        return jnp.sum(jnp.stack([jnp.sum(leaf**2) for leaf in jax.tree.leaves(outputs)]))

    found = saving.named(jax.jit(jax.grad(loss))(state))
    still = [name for name, gradient in found.items() if not np.any(gradient)]
    assert all(np.isfinite(gradient).all() for gradient in found.values())
    assert not [name for name in still if "blocks.1" in name]


def test_a_run_goes_on_from_the_same_architecture_only(tmp_path: Path, net: nets.Network) -> None:
    game = games.make("go", size=SIZE)
    saving.save(net, tmp_path, game)
    fresh = nets.build(net.spec, game, nnx.Rngs(5), dtype="float32")
    again, lost = growing.start_from(tmp_path, fresh, game)
    assert not lost
    jax.tree.map(np.testing.assert_array_equal, again(*seen()), net(*seen()))
    for other in (spec_of(heads=2), nets.spec("b2c8nbt-nogp-silu")):
        large = nnx.eval_shape(lambda other=other: nets.build(other, game, nnx.Rngs(0)))
        with pytest.raises(OptionError, match="a tower with attention grows into no other"):
            growing.start_from(tmp_path, large, game)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"blocks": [3]}, "blocks: expected numbers from 1 to 2 of blocks that do not pool"),
        ({"kv_heads": 3}, "kv_heads: expected a divisor of 4, got 3"),
        ({"key_width": 3}, "key_width: expected an even number, got 3"),
        ({"turning": "twice"}, "attention.turning: expected one of none, fixed, learned"),
    ],
)
def test_bad_attention(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        spec_of(**changes)


def test_squeeze_and_excitation_does_not_go_with_it() -> None:
    spec = spec_of()
    assert spec.tower is not None
    with pytest.raises(OptionError, match="excite_ratio: expected null for a tower with attention"):
        Spec.from_dict(replace(spec, tower=replace(spec.tower, excite_ratio=2)).to_dict())
