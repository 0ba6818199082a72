"""The GPU programs for learning in towers, emulated: the same as the layers, with gradients and running statistics."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import games, gpu, nets
from tengen.gpu import program
from tengen.nets import convs
from tengen.nets.layers import activate, convolve
from tengen.nets.network import BoardNetwork
from tengen.nets.norms import Norm
from tengen.nets.saving import named
from tests.helpers.nvrtc import is_available as nvrtc_is_available

pytestmark = pytest.mark.usefixtures("emulated_gpu")

# [boards, side, channels, activation, whether something is added]
CONVOLUTIONS = {
    "9x9, two sets of boards, the second not full": (5, 9, 96, "relu", True),
    "128 channels, mish": (5, 9, 128, "mish", False),
    "19x19, one board at a time, silu": (3, 19, 128, "silu", True),
    "8x8, a board is a tile": (7, 8, 96, "relu", False),
}


def numbers(*shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(sum(shape)).normal(size=shape), jnp.float32)


def plain(x: jax.Array, scale: jax.Array, shift: jax.Array, kernel: jax.Array, added: Any, activation: Any) -> Any:
    a = activate(x.astype(jnp.float32) * scale + shift, activation).astype(x.dtype)
    y = convolve(a, kernel.astype(x.dtype))
    y = y if added is None else y + added
    wide = y.astype(jnp.float32)
    return y, jnp.stack([wide.sum((0, 1, 2)), jnp.square(wide).sum((0, 1, 2))]), x


def both(boards: int, side: int, channels: int, activation: Any, adds: bool) -> dict[str, tuple[Any, Any]]:
    """Results and gradients of a convolution by the program and by the layers."""
    shape = boards, side, side, channels
    x, added, *changes = (numbers(k, *shape)[0].astype(jnp.bfloat16) for k in range(1, 5))
    arguments = x, 1 + 0.2 * numbers(channels), 0.3 * numbers(1, channels)[0], numbers(3, 3, channels, channels) / 30
    cotangents = changes[0], 0.1 * numbers(2, channels), changes[1]

    def run(function: Any) -> Any:
        def all_of(*given: Any) -> Any:
            results, back = jax.vjp(function, *given)
            return *results, *back(cotangents)

        return jax.jit(all_of)(*arguments, added if adds else None)

    found = run(lambda *given: convs.convolved(*given, activation, True))
    expected = run(lambda *given: plain(*given, activation))
    names = "y", "sums", "x", "dx", "dscale", "dshift", "dkernel", "dadded"
    return {name: (a, b) for name, a, b in zip(names, found, expected, strict=True) if a is not None}


def check(pairs: dict[str, tuple[Any, Any]]) -> None:
    for name, (found, expected) in pairs.items():
        expected = np.asarray(expected.astype(jnp.float32))
        error = np.abs(np.asarray(found.astype(jnp.float32)) - expected) / expected.std()
        assert error.mean() < 0.005, name
        assert error.max() < 0.15, name


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_a_convolution_and_its_gradients_are_the_same_as_by_layers(case: str) -> None:
    check(both(*CONVOLUTIONS[case]))


def made(dtype: nets.Dtype) -> BoardNetwork:
    """An ordinary block and one that pools, with norms that do something."""
    net = nets.build(nets.spec("b2c96-mish", ("ownership",)), games.make("go", size=5), nnx.Rngs(0), dtype=dtype)
    random = np.random.default_rng(0)
    for _, module in nnx.iter_modules(net):
        if isinstance(module, Norm):
            for values in (module.scale, module.shift):
                values[...] = values[...] + jnp.asarray(random.uniform(0, 0.5, values.shape), jnp.float32)
    assert isinstance(net, BoardNetwork)
    return net


def learned(dtype: nets.Dtype, alone: bool, batch: int = 24) -> tuple[dict[str, Any], ...]:
    """Gradients of all parameters, and the new running statistics."""
    net, game = made(dtype), games.make("go", size=5)
    random = np.random.default_rng(1)
    planes = jnp.asarray(random.random((batch, *game.planes_shape)) < 0.3).at[..., 0].set(True)
    scalars = jnp.asarray(random.random((batch, game.num_scalars)), jnp.float32)
    graph, parameters, others = nnx.split(net, nnx.Param, ...)

    @jax.jit
    def gradient(parameters: Any) -> Any:
        def loss(parameters: Any) -> Any:
            net = nnx.merge(graph, parameters, others, copy=True)
            net.alone = alone
            found = net(planes, scalars, train=True)
            sizes = [jnp.sum(numbers(*x.shape) * x) for x in jax.tree.leaves(found)]
            return jnp.sum(jnp.stack(sizes)), nnx.state(net, nnx.BatchStat)

        return jax.grad(loss, has_aux=True)(parameters)

    return tuple({name: np.asarray(x) for name, x in named(tree).items()} for tree in gradient(parameters))


def test_a_network_learns_the_same_as_by_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "is_hopper", lambda: True)
    found, layers, exact = learned("bfloat16", True), learned("bfloat16", False), learned("float32", False)
    for ours, rounded, expected in zip(found, layers, exact, strict=True):
        assert ours.keys() == expected.keys()
        for name in expected:
            error, usual = (np.linalg.norm(x[name] - expected[name]) for x in (ours, rounded))
            # Another number may be the largest of a pool once it is rounded, which changes its gradient.
            assert error < 1.5 * usual + 0.05 * np.linalg.norm(expected[name]), name


def test_where_programs_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "is_hopper", lambda: True)

    def programs(name: str, alone: bool = True, train: bool = True, **options: Any) -> int:
        game = games.make("go", size=9)
        net = nets.build(nets.spec(name), game, nnx.Rngs(0), **({"dtype": "bfloat16"} | options))
        net.alone = alone
        given = jnp.ones((2, *game.planes_shape), bool), jnp.zeros((2, game.num_scalars))
        graph, state = nnx.split(net)
        look = jax.make_jaxpr(lambda *given: nnx.merge(graph, state, copy=True)(*given, train=train).policy)
        return str(look(*given)).count("nets/convs.cu")

    assert programs("b2c96") == 3  # both convolutions of an ordinary block, the first of one that pools
    assert programs("b1c96-nogp", alone=False) == 0
    assert programs("b1c96-nogp", train=False) == 0
    assert programs("b1c96-nogp", dtype="float32") == 0
    assert programs("b1c96-nogp", full_board=False) == 0
    assert programs("b1c96-nogp-se") == 0
    assert programs("b1c64-nogp") == 0


@pytest.mark.skipif(not nvrtc_is_available(), reason="NVRTC is not installed (pip install nvidia-cuda-nvrtc)")
@pytest.mark.parametrize(("channels", "side"), [(96, 9), (128, 19)])
def test_the_programs_compile_for_hopper(channels: int, side: int) -> None:
    x = jax.ShapeDtypeStruct((8, side, side, channels), jnp.bfloat16)
    vector, kernel = jnp.zeros(channels), jnp.zeros((3, 3, channels, channels))

    def learn(x: jax.Array) -> Any:
        results, back = jax.vjp(lambda x: convs.convolved(x, vector, vector, kernel, x, "mish", True), x)
        return back(results)

    launches = [equation.params["launch"] for equation in jax.make_jaxpr(learn)(x).eqns if "launch" in equation.params]
    assert [launch.program.entry for launch in launches] == ["forward", "backward"]
    for launch in launches:
        assert "wgmma.mma_async" in program.ptx(launch.program, program.HOPPER)


@pytest.mark.gpu
@pytest.mark.parametrize(("boards", "side", "channels"), [(1201, 9, 96), (1201, 9, 128), (301, 19, 128), (1201, 8, 96)])
def test_on_a_hopper_gpu_the_programs_are_the_same_as_the_layers(boards: int, side: int, channels: int) -> None:
    if not program.is_hopper():
        pytest.skip("needs a Hopper GPU")
    check(both(boards, side, channels, "mish" if side == 19 else "relu", side != 8))
