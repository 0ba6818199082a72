"""The GPU program of whole towers, emulated: the same as the layers one by one."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.gpu import program
from tengen.nets import tower
from tengen.nets.board import BoardMask
from tengen.nets.network import BoardNetwork
from tengen.nets.norms import Norm
from tests.helpers.nvrtc import is_available as nvrtc_is_available

pytestmark = pytest.mark.usefixtures("emulated_gpu")

# [network, game and its options, positions]
TOWERS = {
    "9x9, pooling, several sets of boards for a block of threads": ("b3c96", "go", {"size": 9}, 9),
    "b6c96": ("b6c96", "go", {"size": 9}, 2),
    "128 channels: all threads work together": ("b2c128", "go", {"size": 9}, 5),
    "13x13, a team for each board": ("b1c96", "go", {"size": 13}, 5),
    "8x8, a board is a tile": ("b2c128", "chess", {}, 5),
    "8x8, three tiles for a team": ("b2c96-nogp", "othello", {}, 7),
    "channels that pool are no multiple of 16": ("b2c128-mish", "go", {"size": 7}, 7),
    "19x19, one board at a time": ("b1c96", "go", {"size": 19}, 2),
    "a board that is not square": ("b2c96-nogp-silu", "connect_four", {}, 9),
}


def folded(name: str, game: games.Game, dtype: nets.Dtype = "bfloat16") -> BoardNetwork:
    """A network whose norms and biases do something."""
    net = nets.build(nets.spec(name), game, nnx.Rngs(0), dtype=dtype)
    random = np.random.default_rng(0)
    for _, module in nnx.iter_modules(net):
        if isinstance(module, Norm):
            for numbers in (module.scale, module.shift, module.mean, module.variance):
                numbers[...] = numbers[...] + jnp.asarray(random.uniform(0, 0.5, numbers.shape), jnp.float32)
    found = nets.fold(net)
    assert isinstance(found, BoardNetwork)
    return found


def inputs(net: BoardNetwork, game: games.Game, batch: int) -> jax.Array:
    random = np.random.default_rng(1)
    planes = jnp.asarray(random.random((batch, *game.planes_shape)) < 0.3).at[..., 0].set(True)
    scalars = jnp.asarray(random.random((batch, game.num_scalars)), jnp.float32)
    return net.stem.inputs(planes, scalars, net.dtype)


@pytest.mark.parametrize("case", TOWERS)
def test_a_tower_is_the_same_as_layer_by_layer(case: str) -> None:
    name, kind, options, batch = TOWERS[case]
    game = games.make(kind, **options)
    net = folded(name, game)
    assert net.packed is not None
    x = inputs(net, game, batch)
    found = np.asarray(net.packed(x).astype(jnp.float32))
    exact = folded(name, game, "float32")
    expected = np.asarray(layer_by_layer(exact, x.astype(jnp.float32)))
    rounded = np.asarray(layer_by_layer(net, x).astype(jnp.float32))
    # bfloat16 has eight digits: the program must be as close to the exact numbers as the layers are.
    error, usual = np.abs(found - expected).max(), np.abs(rounded - expected).max()
    assert error < 1.5 * usual + 1e-3
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.999


def layer_by_layer(net: BoardNetwork, x: jax.Array) -> jax.Array:
    board = BoardMask(None, x.shape[1] * x.shape[2])
    x = net.stem(x)
    for block in net.blocks:
        x = block(x, board, False)
    return net.heads.from_trunk(x, board, False)


@pytest.mark.parametrize(
    ("side", "boards", "teams"),
    [(5, 10, 2), (7, 6, 2), (8, 6, 2), (9, 4, 2), (10, 3, 1), (13, 2, 2), (14, 0, 0), (19, 1, 1), (20, 0, 0)],
)
def test_how_many_boards_and_teams_a_block_of_threads_has(side: int, boards: int, teams: int) -> None:
    plan = tower._plan(side, side, 96, 32)
    assert ((0, 0) if plan is None else (plan.boards, plan.teams)) == (boards, teams)


@pytest.mark.skipif(not nvrtc_is_available(), reason="NVRTC is not installed (pip install nvidia-cuda-nvrtc)")
@pytest.mark.parametrize(("name", "side"), [("b6c96", 9), ("b10c128", 19), ("b6c128-mish", 9), ("b2c96-mish", 9)])
def test_the_program_compiles_for_hopper(name: str, side: int) -> None:
    game = games.make("go", size=side)
    net = folded(name, game)
    assert net.packed is not None
    jaxpr = jax.make_jaxpr(net.packed)(jax.ShapeDtypeStruct((8, side, side, 32), jnp.bfloat16))
    launch = next(equation.params["launch"] for equation in jaxpr.eqns if "launch" in equation.params)
    assert launch.program.hopper
    text = program.ptx(launch.program, program.HOPPER)
    assert ".target sm_90a" in text
    assert "wgmma.mma_async" in text


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("b6c96", "go", {"size": 9}),
        ("b6c128-mish", "go", {"size": 9}),
        ("b2c96", "go", {"size": 10}),
        ("b2c96", "go", {"size": 13}),
        ("b10c128", "go", {"size": 19}),
        ("b6c128", "chess", {}),
    ],
)
def test_on_a_hopper_gpu_the_program_is_the_same_as_the_layers(name: str, kind: str, options: dict[str, Any]) -> None:
    if not program.is_hopper():
        pytest.skip("needs a Hopper GPU")
    game = games.make(kind, **options)
    net = folded(name, game)
    assert net.packed is not None
    x = inputs(net, game, 1201)
    found, expected = jax.jit(net.packed)(x), jax.jit(lambda x: layer_by_layer(net, x))(x)
    expected = np.asarray(expected.astype(jnp.float32))
    error = np.abs(np.asarray(found.astype(jnp.float32)) - expected) / expected.std()
    # Rounding alone gave at most 0.0071 and 0.075: the two sum in another order, and round different numbers.
    assert error.mean() < 0.01
    assert error.max() < 0.15


@pytest.mark.parametrize("name", ["b2c64", "b2c256", "b2c96-se", "b2c96-xt4", "b2c96nbt", "b2c96-stem5"])
def test_other_towers_are_left_to_the_layers(name: str) -> None:
    assert folded(name, games.make("go", size=5)).packed is None


def test_float32_is_left_to_the_layers() -> None:
    assert folded("b1c96", games.make("go", size=5), "float32").packed is None


def test_a_tower_with_more_inputs_than_channels_is_left_to_the_layers() -> None:
    assert folded("b1c96", games.make("chess")).packed is None
    assert folded("b1c128", games.make("chess")).packed is not None


def test_boards_that_the_program_does_not_support_are_left_to_the_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in runs with several sizes: the network of the largest board also sees others."""
    monkeypatch.setattr(program, "_capabilities", lambda: {program.HOPPER})
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    net = folded("b1c96", games.make("go", size=13))
    for side, programs in ((13, 1), (11, 0)):
        game = games.make("go", size=side)
        given = jnp.ones((2, *game.planes_shape), bool), jnp.zeros((2, game.num_scalars))
        assert str(jax.make_jaxpr(net)(*given)).count("nets/tower.cu") == programs


def test_folding_again_packs_again() -> None:
    net = folded("b1c96", games.make("go", size=5))
    assert net.packed is not None
    assert nets.fold(net).packed is not None
    assert nets.fold(net, "float32").packed is None
    assert nets.fold(net, kernels=False).packed is None


def test_without_such_a_gpu_a_packed_network_uses_the_layers() -> None:
    game = games.make("go", size=5)
    net = folded("b1c96", game)
    planes = jnp.ones((3, *game.planes_shape), bool)
    scalars = jnp.zeros((3, game.num_scalars))

    def outputs(net: BoardNetwork) -> nets.Outputs:
        graph, state = nnx.split(net)
        return jax.jit(lambda state: nnx.merge(graph, state)(planes, scalars))(state)

    assert net.packed is not None
    jax.tree.map(np.testing.assert_array_equal, outputs(net), outputs(nets.fold(net, kernels=False)))
