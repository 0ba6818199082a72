"""A network that begins with the parameters of another one computes what that one did."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.errors import OptionError
from tengen.games.core import Game
from tengen.nets import growing, saving

GAMES = {
    "go": games.make("go", size=5),
    "connect_four": games.make("connect_four"),
    "hironaka": games.make("hironaka"),
}


def observations(game: Game) -> tuple[Any, Any]:
    """Random planes and scalars: what they mean does not matter."""
    rng = np.random.default_rng(3)
    planes = rng.random((4, *game.planes_shape)) < 0.5
    return jnp.asarray(planes), jnp.asarray(rng.random((4, game.num_scalars)), jnp.float32)


def shaken(spec: nets.Spec, game: Game) -> nets.Network:
    """A network none of whose variables has its first value, as after training."""
    net = nets.build(spec, game, nnx.Rngs(0), dtype="float32")
    rng = np.random.default_rng(5)
    tensors = {
        name: jnp.asarray(x + 0.1 * rng.random(x.shape, np.float32)) for name, x in saving.named(nnx.state(net)).items()
    }
    return nnx.merge(nnx.graphdef(net), saving.unnamed(tensors))


@pytest.mark.parametrize(
    ("game", "small", "large"),
    [
        pytest.param("go", "b2c8", "b4c16", marks=pytest.mark.slow),  # pooling moves from block 2 to block 3
        pytest.param("go", "b2c8-se", "b3c16-se4", marks=pytest.mark.slow),
        pytest.param("go", "b2c8-nogp", "b2c8-nogp-se", marks=pytest.mark.slow),
        pytest.param("go", "b1c8nbt", "b3c16nbt", marks=pytest.mark.slow),
        pytest.param("go", "b2c8-xt2-nogp", "b3c16-xt4-nogp", marks=pytest.mark.slow),
        pytest.param("connect_four", "b2c8", "b4c12", marks=pytest.mark.slow),
        ("hironaka", "mlp1x8", "mlp3x16"),
    ],
)
def test_a_larger_network_computes_the_same(game: str, small: str, large: str, tmp_path: Path) -> None:
    played = GAMES[game]
    heads = ("opponent_policy", "moves_left") if game != "hironaka" else ("moves_left",)
    old = shaken(nets.spec(small), played)
    saving.save(old, tmp_path, played)
    fresh = nets.build(nets.spec(large, heads), played, nnx.Rngs(1), dtype="float32")
    grown, lost = growing.start_from(tmp_path, fresh, played)
    assert not lost
    seen = observations(played)
    before, after, other = old(*seen), grown(*seen), fresh(*seen)
    assert np.allclose(before.policy, after.policy, atol=2e-4, rtol=2e-4)
    assert np.allclose(before.value, after.value, atol=2e-4, rtol=2e-4)
    assert not np.allclose(after.policy, other.policy, atol=1e-2)
    assert after.moves_left is not None
    assert np.isfinite(after.moves_left).all()


@pytest.mark.slow
def test_what_is_new_learns_from_the_first_step(tmp_path: Path) -> None:
    game = GAMES["go"]
    saving.save(shaken(nets.spec("b1c8-nogp"), game), tmp_path, game)
    fresh = nets.build(nets.spec("b2c16-nogp"), game, nnx.Rngs(1), dtype="float32")
    grown, _ = growing.start_from(tmp_path, fresh, game)
    graph, learned, others = nnx.split(grown, nnx.Param, ...)

    def loss(learned: Any) -> jax.Array:
        return jnp.square(nnx.merge(graph, learned, others)(*observations(game)).policy).mean()

    gradient = saving.named(jax.grad(loss)(learned))
    assert np.abs(gradient["blocks.1.branch.steps.1.conv.kernel"]).max() > 0  # the last convolution of the new block
    assert np.abs(gradient["blocks.0.branch.steps.0.conv.kernel"][:, :, 8:, :8]).max() > 0  # from new channels to old
    assert np.abs(gradient["heads.neck.kernel"][0, 0, 8:]).max() > 0


def test_another_size_and_komi_and_fewer_heads(tmp_path: Path) -> None:
    small, large = GAMES["go"], games.make("go", size=7, komi=0.5)
    old = shaken(nets.spec("b2c8", ("ownership", "opponent_policy")), small)
    saving.save(old, tmp_path, small)
    fresh = nets.build(nets.spec("b2c8"), large, nnx.Rngs(1), dtype="float32")
    grown, lost = growing.start_from(tmp_path, fresh, large)
    assert lost == ("heads.value.ownership.kernel",)
    seen = observations(large)
    same = saving.load(tmp_path, large, dtype="float32")(*seen)
    assert np.allclose(grown(*seen).policy, same.policy, atol=1e-4)
    assert np.allclose(grown(*seen).value, same.value, atol=1e-4)


def test_what_cannot_grow_is_refused_with_the_reason(tmp_path: Path) -> None:
    game = GAMES["go"]
    saving.save(nets.build(nets.spec("b2c8"), game, nnx.Rngs(0)), tmp_path, game)

    def refused(spec: nets.Spec, words: str) -> None:
        with pytest.raises(OptionError, match=words):
            growing.start_from(tmp_path, nets.build(spec, game, nnx.Rngs(0)), game)

    refused(nets.spec("b2c4"), "its channels are 8, more than 4")
    refused(nets.spec("b2c8-mish"), "its activation is relu, not mish")
    refused(nets.spec("b4c16nbt"), "its blocks are residual, not nested")
    refused(nets.spec("b4c16-nogp"), "its 2 blocks, of which 2 pool, are not found in this order among 4")
    tower = nets.spec("b4c16").tower
    assert tower is not None
    spec = dataclasses.replace(nets.spec("b4c16"), tower=dataclasses.replace(tower, pool_blocks=(1,)))
    refused(spec, "of which 1 pool; net.spec.tower.pool_blocks says which")
    few = dataclasses.replace(tower, channels=8, mid_channels=8, pool_channels=6)
    refused(
        dataclasses.replace(spec, tower=few), "5 channels that are not pooled, more than 2; net.spec with at most 3"
    )
    more = games.make("go", size=5, observation="katago")
    with pytest.raises(
        OptionError, match="it sees 12 planes and 11 scalars, not 22 and 19; it needs game.observation=ten"
    ):
        growing.start_from(tmp_path, nets.build(nets.spec("b2c8"), more, nnx.Rngs(0)), more)
    other = games.make("othello")
    with pytest.raises(OptionError, match="a network for go cannot be the start of one for othello"):
        growing.start_from(tmp_path, nets.build(nets.spec("b2c8"), other, nnx.Rngs(0)), other)


@pytest.mark.parametrize("name", ["b2c16-se-lc0", pytest.param("b2c64-lc0enc8", marks=pytest.mark.slow)])
def test_a_network_of_lc0_goes_on_as_it_is(name: str, tmp_path: Path) -> None:
    """Its blocks have the names of a tower's, and there is none."""
    chess = games.make("chess")
    spec = nets.spec(name, ("moves_left",))
    old = shaken(spec, chess)
    saving.save(old, tmp_path, chess)
    grown, lost = growing.start_from(tmp_path, nets.build(spec, chess, nnx.Rngs(1)), chess)
    assert lost == ()
    wanted, found = (saving.named(nnx.state(net)) for net in (old, grown))
    assert all(np.array_equal(tensor, found[name]) for name, tensor in wanted.items())
