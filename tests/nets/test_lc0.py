"""Networks as Lc0 has them."""

import jax
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.errors import OptionError
from tests.interop.lc0.test_network import positions


@pytest.mark.parametrize("name", ["b2c8-se4-lc0", "b1c8-lc0att-mish", "b1c8-lc0dense-silu"])
def test_names_and_folding(name: str) -> None:
    spec = nets.spec(name, ("moves_left",))
    assert nets.name_of(spec) == name
    assert nets.Spec.from_dict(spec.to_dict()) == spec
    net = nets.build(spec, games.make("chess"), nnx.Rngs(0), dtype="float32")
    seen = positions(3)
    net(seen.planes, seen.scalars, train=True)  # statistics other than 0 and 1
    one, other = (each(seen.planes, seen.scalars) for each in (net, nets.fold(net, kernels=False)))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-3), one, other)
    assert one.policy.shape == (3, 1858)
    assert one.moves_left is not None
    assert (one.moves_left > 0).all()


@pytest.mark.parametrize("name", ["mlp3x256-lc0", "b2c8nbt-lc0", "b4c32-xt4-lc0", "b4c32-stem5-lc0"])
def test_endings_that_lc0_does_not_have(name: str) -> None:
    with pytest.raises(OptionError, match=r"a tower of Lc0 is a name like b10c128-se-lc0|is for networks on a board"):
        nets.spec(name)


def test_other_games_and_heads_are_refused() -> None:
    with pytest.raises(OptionError, match="tic_tac_toe is not chess, for which Lc0's networks are"):
        nets.build(nets.spec("b1c8-lc0"), games.make("tic_tac_toe"), nnx.Rngs(0))
    with pytest.raises(OptionError, match="no head for opponent_policy, expected moves_left or none"):
        nets.build(nets.spec("b1c8-lc0", ("opponent_policy",)), games.make("chess"), nnx.Rngs(0))
