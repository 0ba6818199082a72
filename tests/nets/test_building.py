"""Only networks that make sense are built; folding changes how they compute, not what."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import games, jax_setup, nets
from tengen.errors import OptionError
from tengen.nets import saving
from tengen.nets.building import build_for_device
from tengen.nets.norms import Norm


def positions(game: games.Game) -> tuple[jax.Array, jax.Array]:
    numbers = np.random.default_rng(0)
    planes = numbers.random((2, *game.planes_shape)) < 0.5
    if game.planes_shape[2]:
        planes[..., 0] = numbers.random(game.planes_shape[:2]) < 0.8
    return jnp.asarray(planes), jnp.asarray(numbers.normal(size=(2, game.num_scalars)), jnp.float32)


CASES = {
    "pooling and excitation": ("b2c8-se", "go", True),
    "nested and grouped": ("b1c8nbt-xt2-mish", "go", False),
    "columns": ("b1c8-nogp-silu", "connect_four", True),
    "layers": ("mlp2x8", "hironaka", True),
}


@pytest.mark.parametrize("case", CASES)
def test_a_folded_network_says_the_same(random_net: Any, quick_jit: Any, case: str) -> None:
    name, game_name, full_board = CASES[case]
    game = games.make(game_name, **({"size": 5} if game_name == "go" else {}))
    net = random_net(name, game, nets.possible_heads(game), full_board=full_board)
    inputs = positions(game)
    graph, state = nnx.split(net)

    @quick_jit
    def both(state: Any) -> tuple[nets.Outputs, nets.Outputs]:
        net = nnx.merge(graph, state)
        return net(*inputs), nets.fold(net)(*inputs)

    expected, found = both(state)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), found, expected)
    assert float(jnp.std(expected.policy)) > 0.01


def test_no_statistics_are_left_and_the_network_itself_stays_as_it_was() -> None:
    def fold() -> tuple[nets.Network, nets.Network, nets.Network]:
        net = nets.build(nets.spec("b2c8"), games.make("go", size=5), nnx.Rngs(0), dtype="bfloat16")
        folded = nets.fold(net)
        return net, folded, nets.fold(folded, "float32")

    net, folded, again = nnx.eval_shape(fold)
    assert jax.tree.leaves(nnx.state(net, nnx.BatchStat))
    assert not jax.tree.leaves(nnx.state(folded, nnx.BatchStat))
    assert not any(isinstance(module, Norm) for _, module in nnx.iter_modules(folded))
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(nnx.state(net))} == {"float32"}
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(nnx.state(folded)) if leaf.ndim > 1} == {"bfloat16"}
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(nnx.state(again))} == {"float32"}
    assert (net.folded, folded.folded, again.dtype) == (False, True, "float32")


def test_what_does_not_fit_the_game() -> None:
    go, hironaka = games.make("go", size=5), games.make("hironaka")
    with pytest.raises(OptionError, match="hironaka has no board, expected a network of dense layers such as mlp3x256"):
        nets.build(nets.spec("b1c8"), hironaka, nnx.Rngs(0))
    with pytest.raises(OptionError, match="go is played on a 5x5 board, expected a tower such as b6c96"):
        nets.build(nets.spec("mlp1x8"), go, nnx.Rngs(0))
    with pytest.raises(
        OptionError, match="tic_tac_toe has no score to learn from, expected some of opponent_policy, moves"
    ):
        nets.build(nets.spec("b1c8", ("score",)), games.make("tic_tac_toe"), nnx.Rngs(0))
    with pytest.raises(OptionError, match="scores: unknown head, did you mean score"):
        nets.build(nets.spec("b1c8", ("scores",)), go, nnx.Rngs(0))


@pytest.mark.parametrize("folded", [False, True])
def test_heads_for_the_targets_of_a_game(folded: bool, tmp_path: Path) -> None:
    game = games.make("tests.helpers.every_target:EveryTarget")
    heads = ("opponent_policy", "ownership", "mine", "filled", "lead", "stones")
    net = nets.build(nets.spec("b1c8", heads), game, nnx.Rngs(0))
    saving.save(net, tmp_path, game)
    net = saving.load(tmp_path)  # the game is found by its name
    net = nets.fold(net) if folded else net
    inputs = jnp.ones((2, *game.planes_shape), bool), jnp.zeros((2, 0))
    outputs = jax.eval_shape(lambda *seen: net(*seen), *inputs)
    assert outputs.extra is not None
    assert {name: x.shape for name, x in outputs.extra.items()} == {
        "mine": (2, 3, 3), "filled": (2, 9), "lead": (2, 2), "stones": (2,),
    }  # fmt: skip
    assert (outputs.policy.shape, outputs.opponent_policy.shape, outputs.score) == ((2, 9), (2, 9), None)


def test_bad_specs_and_types_are_refused() -> None:
    go, good = games.make("go", size=5), nets.spec("b1c8")
    assert good.tower is not None
    bad = replace(good, tower=replace(good.tower, groups=3))
    with pytest.raises(
        OptionError, match=r"network: tower.groups: expected a divisor of the 8 channels inside a block"
    ):
        nets.build(bad, go, nnx.Rngs(0))
    with pytest.raises(OptionError, match='dtype: expected one of bfloat16, float32, got "float16"'):
        nets.build(good, go, nnx.Rngs(0), dtype="float16")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("cpu", [True, False], ids=["by the CPU", "by one program"])
def test_a_network_for_an_accelerator_is_the_same(cpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    if not cpu:
        monkeypatch.setattr(jax_setup, "cpu", lambda: None)
    spec, game, key = nets.spec("b1c8"), games.make("tic_tac_toe"), jax.random.key(3)
    found = build_for_device(spec, game, key, dtype="float32", full_board=False)
    expected = nets.build(spec, game, nnx.Rngs(key), dtype="float32", full_board=False)
    assert nnx.graphdef(found) == nnx.graphdef(expected)
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-5), nnx.state(found), nnx.state(expected)
    )
