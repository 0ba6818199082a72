"""Lc0's networks in Tengen and back: the numbers are those of a slow version of Lc0's own layers."""

from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.errors import TengenError
from tengen.games import chess_lc0
from tengen.interop.lc0.network import from_lc0, to_lc0
from tests.oracles import lc0_network as oracle

KINDS: dict[str, dict[str, Any]] = {
    "convolution": {},
    "attention, mish": {"policy": 3, "mish": True},
    "dense, no SE, tanh, folded": {"policy": 1, "se": False, "wdl": False, "left": False, "norms": False},
}


def positions(count: int) -> Any:
    """Random planes of Tengen's observation."""
    numbers = np.random.default_rng(0)
    return chess_lc0.observation(
        numbers.random((count, 104, 8, 8)) < 0.2,
        numbers.random((count, 4)) < 0.5,
        numbers.random(count) < 0.5,
        numbers.integers(0, 100, count),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_numbers_in_both_directions(kind: str) -> None:
    game = games.make("chess")
    given = oracle.network(1, **KINDS[kind])
    net = from_lc0(given, game)
    seen = positions(2)
    found = nets.fold(net, kernels=False)(seen.planes, seen.scalars)
    # The engine gives its networks the raw count of plies.
    for layers in (given, to_lc0(net, "net")):
        for number, planes in enumerate(chess_lc0.inputs(seen)):
            expected = oracle.evaluate(layers, planes)
            np.testing.assert_allclose(found.policy[number], expected["policy"], atol=1e-3)
            np.testing.assert_allclose(jax.nn.softmax(found.value[number]), expected["wdl"], atol=1e-4)
            if found.moves_left is not None:
                np.testing.assert_allclose(found.moves_left[number], expected["moves_left"][0], rtol=1e-4)
    assert (found.moves_left is None) == (kind != "convolution" and "mish" not in kind)


def test_the_count_of_plies_matters() -> None:
    """A wrong scale of the plane would be a factor of 99."""
    given = oracle.network(1)
    planes = chess_lc0.inputs(positions(1))[0]
    some, none = (oracle.evaluate(given, np.where(np.arange(112)[:, None, None] == 109, count, planes))
                  for count in (50, 0))  # fmt: skip
    assert np.abs(some["policy"] - none["policy"]).max() > 0.1


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda net: form(net).update(network=7), "its policy_heads.vanilla is missing"),
        (lambda net: form(net).update(network=5), "kind 'ONNX', expected residual blocks or an attention body"),
        (lambda net: form(net).update(network=77), "kind 'kind 77'"),
        (lambda net: net["weights"].update(encoder=[b""]), "residual blocks and encoder layers, expected one of both"),
        (lambda net: form(net).update(input=3), "input format 3, expected 1"),
        (lambda net: form(net).update(policy=9), "its policy head has the number 9"),
        (lambda net: form(net).update(value=3), "its value head has the number 3"),
        (lambda net: form(net).update(default_activation=5), "its activation has the number 5"),
        (lambda net: net["weights"].update(pol_encoder=[b""]), "its policy head has encoder layers"),
        (lambda net: net["weights"].pop("policy1"), "its policy1 is missing"),
        (lambda net: net.pop("weights"), "its input is missing"),
        (lambda net: net["weights"]["input"].update(weights=np.zeros(5)), "its input has 5 numbers, expected 8 x 112"),
        (lambda net: value(net).update(bn_stddivs=np.zeros(0)), "its value.bn_stddivs has 0 numbers, expected 4"),
        (lambda net: value(net).update(bn_gammas=np.zeros(3)), "its value.bn_gammas has 3 numbers, expected 4"),
        (lambda net: value(net).update(bn_stddivs=np.full(4, -1.0)), "value.bn_stddivs holds a variance"),
        (lambda net: net["weights"].update(ip1_val_w=np.zeros(5)), "ip1_val_w has 5 numbers, expected 16 x 256"),
    ],
)
def test_other_kinds_are_refused_by_name(spoil: Any, message: str) -> None:
    net = oracle.network(0)
    spoil(net)
    with pytest.raises(TengenError, match=message):
        from_lc0(net, games.make("chess"))


def form(net: dict[str, Any]) -> dict[str, Any]:
    return net["format"]["network_format"]


def value(net: dict[str, Any]) -> dict[str, Any]:
    """The convolution of the value head."""
    return net["weights"]["value"]


def test_networks_that_lc0_cannot_compute() -> None:
    game = games.make("tic_tac_toe")
    with pytest.raises(TengenError, match="mine: Lc0 computes its own kinds of networks only"):
        to_lc0(nets.build(nets.spec("b1c8"), game, nnx.Rngs(0)), "mine")
    with pytest.raises(TengenError, match="Lc0 has no activation silu, expected relu or mish"):
        to_lc0(nets.build(nets.spec("b1c8-lc0-silu"), games.make("chess"), nnx.Rngs(0)), "mine")
