"""Networks in both directions, against a slow network in NumPy that is computed from the file's layers."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.errors import TengenError
from tengen.interop.katago import network
from tengen.interop.katago.model import AttentionWeights
from tests.interop.katago.test_model_file import KINDS
from tests.oracles import katago_network as oracle

OURS = [*range(7), *range(9, 14)], [*range(9), 14, 18]


def inputs(size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    planes = rng.random((3, size, size, 22)) < 0.3
    planes[..., 0] = True
    return planes, rng.normal(size=(3, 19)).astype(np.float32)


def katago_game() -> Any:
    return games.make("go", size=5, observation="katago")


def with_statistics(net: nets.Network) -> nets.Network:
    """The network with random running statistics, as training leaves them."""
    rng = np.random.default_rng(1)
    found = nnx.state(net, nnx.BatchStat)
    nnx.update(net, jax.tree.map(lambda x: x + jnp.asarray(rng.uniform(0.1, 0.5, x.shape), x.dtype), found))
    return net


@pytest.mark.parametrize(("version", "options"), KINDS)
def test_networks_in(version: int, options: dict[str, Any]) -> None:
    model, game = oracle.random_model(version, **options), katago_game()
    net = network.from_katago(model, game)
    planes, scalars = inputs(5)
    found = jax.jit(lambda net, *x: net(*x))(net, planes, scalars)
    for n in range(3):
        expected = oracle.evaluate(model, planes[n], scalars[n])
        np.testing.assert_allclose(found.policy[n], expected["policy"], atol=2e-4)
        np.testing.assert_allclose(found.value[n, [0, 2]], expected["value"][:2], atol=2e-4)
        assert jax.nn.softmax(found.value[n])[1] < 1e-6
        np.testing.assert_allclose(found.score[n], expected["score"], rtol=1e-4, atol=2e-3)
        np.testing.assert_allclose(found.ownership[n], expected["ownership"], atol=2e-4)


@pytest.mark.slow
def test_no_result_is_a_draw_under_simple_ko() -> None:
    model = oracle.random_model(8)
    net = network.from_katago(model, games.make("go", size=5, ko="simple", observation="katago"))
    planes, scalars = inputs(5)
    expected = oracle.evaluate(model, planes[0], scalars[0])["value"]
    np.testing.assert_allclose(net(planes, scalars).value[0], expected[[0, 2, 1]], atol=2e-4)


@pytest.mark.parametrize(
    ("name", "heads", "version"),
    [("b2c8", ("ownership", "score", "opponent_policy"), 8), ("b2c8nbt-mish", (), 11)],
)
def test_networks_out(name: str, heads: tuple[nets.Head, ...], version: int) -> None:
    game = games.make("go", size=5)
    net = with_statistics(nets.build(nets.spec(name, heads), game, nnx.Rngs(3), dtype="float32"))
    model = network.to_katago(net, game, "out")
    assert model.version == version
    planes, scalars = inputs(5)
    found = jax.jit(lambda net, *x: net(*x))(net, planes[..., OURS[0]], scalars[:, OURS[1]])
    for n in range(3):
        expected = oracle.evaluate(model, planes[n], scalars[n])
        np.testing.assert_allclose(found.policy[n], expected["policy"], rtol=1e-4, atol=2e-4)
        np.testing.assert_allclose(found.value[n, [0, 2]], expected["value"][:2], rtol=1e-4, atol=2e-4)
        if heads:
            np.testing.assert_allclose(found.score[n], expected["score"], rtol=1e-4, atol=2e-3)
            np.testing.assert_allclose(expected["lead"], expected["score"][0])
            np.testing.assert_allclose(found.ownership[n], expected["ownership"], rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize(("version", "options"), [KINDS[0], KINDS[4], KINDS[5], KINDS[7]])
def test_in_and_out_again(version: int, options: dict[str, Any]) -> None:
    model, game = oracle.random_model(version, **options), katago_game()
    again = network.to_katago(network.from_katago(model, game), game, "again")
    assert again.version == (17 if "tip" in options else model.version)
    planes, scalars = inputs(5)
    for n in range(3):
        one, other = (oracle.evaluate(m, planes[n], scalars[n]) for m in (model, again))
        np.testing.assert_allclose(one["policy"], other["policy"], atol=1e-4)
        np.testing.assert_allclose(one["score"], other["score"], rtol=1e-4)


@pytest.mark.parametrize(
    ("game", "name", "message"),
    [
        ("go", "b1c8-se", "squeeze-and-excitation"),
        ("go", "b1c8-xt2", "grouped convolutions"),
        ("othello", "b1c8", "a network for othello, but KataGo plays Go"),
    ],
)
def test_networks_that_katago_cannot_compute(game: str, name: str, message: str) -> None:
    made = games.make(game)
    net = nnx.eval_shape(lambda: nets.build(nets.spec(name), made, nnx.Rngs(0)))
    with pytest.raises(TengenError, match=f"^mine: .*{message}"):
        network.to_katago(net, made, "mine")


def test_units_for_the_pass_that_katago_refuses() -> None:
    game, spec = katago_game(), nets.spec("b1c8")
    assert spec.tower is not None
    odd = replace(spec, tower=replace(spec.tower, pass_units=spec.tower.policy_channels + 1))
    net = nnx.eval_shape(lambda: nets.build(odd, game, nnx.Rngs(0)))
    with pytest.raises(TengenError, match="mine: KataGo wants as many pass_units as policy_channels"):
        network.to_katago(net, game, "mine")


def test_blocks_that_tengen_does_not_have() -> None:
    model = oracle.random_model(17, attention="fixed")
    attention, dense = model.blocks[2:]
    assert isinstance(attention, AttentionWeights)
    again = replace(attention, turns=50.0), dense
    other = replace(attention, norm=replace(attention.norm, epsilon=1e-3)), dense
    for blocks, message in (
        ((attention,), "attention is not followed by one of dense layers"),
        ((dense,), "dense layers does not follow one of attention"),
        ((attention, dense, *again), "different position embeddings"),
        (other, "a norm has the epsilon 0.001, expected 1e-06"),
    ):
        with pytest.raises(TengenError, match=message):
            network.from_katago(replace(model, blocks=(*model.blocks[:2], *blocks)), katago_game())


def test_networks_that_tengen_cannot_compute() -> None:
    model = oracle.random_model(8)
    with pytest.raises(TengenError, match="observation: katago"):
        network.from_katago(model, games.make("go", size=5))
    with pytest.raises(TengenError, match="several activations: mish, relu"):
        network.from_katago(replace(model, tip_activation="mish"), SimpleNamespace())  # type: ignore[arg-type]
    with pytest.raises(TengenError, match="unit 40, expected 20"):
        network.from_katago(replace(model, multipliers=(20.0, 40.0, *model.multipliers[2:])), katago_game())
