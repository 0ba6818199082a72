"""The GPU programs between the convolutions, emulated: the same as XLA's versions and as by hand."""

import re
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.nets import gpu
from tengen.nets.blocks import PoolBias
from tengen.nets.board import BoardMask
from tengen.nets.heads import Heads
from tengen.nets.layers import Conv
from tengen.nets.network import BoardNetwork
from tengen.nets.norms import Affine, Nothing
from tengen.nets.specs import Activation

pytestmark = pytest.mark.usefixtures("emulated_gpu")
CHANNELS = 64  # of the trunk
TOLERANCE = {"float32": 1e-5, "bfloat16": 0.03}


def numbers(shape: tuple[int, ...], dtype: nets.Dtype) -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), dtype)


def close(found: Any, expected: Any, dtype: nets.Dtype) -> None:
    def compare(a: jax.Array, b: jax.Array) -> None:
        wide = np.asarray(a.astype(jnp.float32)), np.asarray(b.astype(jnp.float32))
        np.testing.assert_allclose(*wide, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * float(np.std(wide[1])))

    jax.tree.map(compare, found, expected)


# Pooling blocks: [side, regular and pooled channels, channels that nobody looks at, activation, type]
BLOCKS = {
    "9x9 in tiles": (9, 64, 32, 0, "relu", "float32"),
    "bfloat16": (9, 16, 8, 0, "mish", "bfloat16"),
    "channels that are no power of two": (5, 5, 3, 0, "silu", "float32"),
    "more channels than are looked at": (7, 8, 8, 5, "mish", "float32"),
    "19x19": (19, 12, 4, 0, "relu", "float32"),
    "one point": (1, 1, 1, 0, "silu", "float32"),
    "more channels than threads": (2, 192, 8, 0, "relu", "bfloat16"),
}


@pytest.mark.parametrize("biased", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow if number > 3 else ()) for number, case in enumerate(BLOCKS)]
)
def test_a_pooling_block_is_the_same_as_by_xla(quick_jit: Any, case: str, biased: bool) -> None:
    side, regular, pooled, more, activation, dtype = BLOCKS[case]
    board = BoardMask(None, side * side)
    block = PoolBias(regular, pooled, activation, nnx.Rngs(0))
    block.norm, block.pooled_norm = Nothing(), Nothing()
    block.dense.cast(dtype)
    channels = regular + pooled + more
    x, dense, shift = numbers((3, side, side, channels), dtype), block.dense.kernel[...], None
    before = Conv(1, 1, channels, nnx.Rngs(0))
    if biased:
        shift = numbers((channels,), dtype)
        before.bias = nnx.Param(shift)
    assert gpu.suits_pool(x, dense)
    assert isinstance(board.side, float)
    found = gpu.pool_bias(x, shift, dense, side=board.side, activation=activation)
    close(found, quick_jit(lambda x: block(x, before, board, False))(x), dtype)


def test_layers_too_large_for_it() -> None:
    x = jnp.zeros((1, 1, 1, 256))
    assert gpu.suits_pool(x, jnp.zeros((3 * 64, 128)))
    assert gpu.suits_pool(x, jnp.zeros((3 * 127, 127)))  # read one by one, a thread for each
    assert not gpu.suits_pool(x, jnp.zeros((3 * 64, 129)))
    assert not gpu.suits_pool(jnp.zeros((1, 1, 1, 2048)), jnp.zeros((3 * 64, 128)))
    huge: Any = jax.ShapeDtypeStruct((2**15, 16, 16, 2**8), jnp.bfloat16)
    assert not gpu.suits_pool(huge, jnp.zeros((3, 1)))
    assert not gpu.suits_pool(x, jnp.zeros((3 * 2, 250)))  # pooled in pairs, but a dense layer is read in fours


# Heads: [side, channels of the policy and of the value, hidden units, heads, activation, type]
HEADS = {
    "9x9 in tiles": (9, 32, 32, 64, (), "relu", "float32"),
    "bfloat16": (9, 8, 8, 12, ("ownership",), "relu", "bfloat16"),
    "all heads, no power of two": (5, 5, 3, 7, ("ownership", "opponent_policy", "score"), "mish", "float32"),
    "19x19": (19, 4, 6, 8, ("opponent_policy", "ownership"), "silu", "float32"),
    "7x7, more hidden units than threads": (7, 3, 4, 200, ("moves_left",), "silu", "float32"),
}


def folded(
    game: games.Game, policy: int, value: int, hidden: int, heads: tuple[nets.Head, ...], activation: Activation,
    dtype: nets.Dtype,
) -> Heads:  # fmt: skip
    """The heads of a network for the game, folded; those that XLA does."""
    spec = nets.spec(f"b1c{CHANNELS}", heads)
    assert spec.tower is not None
    tower = replace(spec.tower, policy_channels=policy, value_channels=value, value_width=hidden)
    net = nets.build(replace(spec, tower=tower, activation=activation), game, nnx.Rngs(0), dtype=dtype)
    found = nets.fold(net, kernels=False)
    assert isinstance(found, BoardNetwork)
    return found.heads


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow if number > 2 else ()) for number, case in enumerate(HEADS)]
)
def test_the_heads_are_the_same_as_by_xla(quick_jit: Any, case: str) -> None:
    side, policy, value, hidden, names, activation, dtype = HEADS[case]
    game, board = games.make("go", size=side), BoardMask(None, side * side)
    heads = with_biases(folded(game, policy, value, hidden, names, activation, dtype))
    weights = heads.weights()
    x = numbers((3, side, side, 2 * policy + value), dtype)
    assert weights is not None
    assert isinstance(board.side, float)
    assert isinstance(board.square, float)
    scales, kinds = (board.side, board.square), heads.policy.kinds

    @quick_jit
    def both(x: jax.Array) -> Any:
        found = gpu.heads(x, weights, kinds=kinds, scales=scales, activation=activation)
        policies = heads.policy(x, heads.neck, board, False)
        return found, gpu.HeadOutputs(policies, *heads.value(heads.neck.biased(x)[..., 2 * policy :], board, False))

    found, expected = both(x)
    assert found.policies.shape == (3, heads.policy.kinds, game.num_actions)
    assert (found.ownership is None) == ("ownership" not in names)
    close(found, expected, dtype)


def with_biases(heads: Heads) -> Heads:
    """New networks have none: random ones."""
    assert isinstance(heads.tip, Affine)
    for layer in (heads.neck, heads.value.hidden):
        assert layer.bias is not None
        layer.bias = nnx.Param(numbers(layer.bias.shape, "float32").astype(layer.bias.dtype))
    heads.tip.shift = nnx.Param(numbers((CHANNELS,), "float32"))
    return heads


def test_several_logits_per_point_as_by_hand() -> None:
    """Two policies of three logits for each of 4 points, whose regular channel is 1, 2, 3, 4; nothing is pooled."""
    x = jnp.zeros((1, 2, 2, 3)).at[..., 0].set(jnp.asarray([[1.0, 2], [3, 4]]))
    zeros = {"shift": jnp.zeros(3), "bias": jnp.zeros((3, 1)), "hidden": jnp.zeros((3, 1)), "hidden_bias": jnp.ones(1)}
    weights = gpu.HeadWeights(**zeros, points=jnp.asarray([[1.0, 10, 100, -1]]), extra=None, ownership=None)
    found = gpu.heads(x, weights, kinds=2, scales=(0.5, 0.5), activation="relu")
    assert found.policies[0, 0].tolist() == [1, 10, 2, 20, 3, 30, 4, 40]
    assert found.policies[0, 1].tolist() == [100, -1, 200, -2, 300, -3, 400, -4]
    assert found.hidden.tolist() == [[1.0]]
    assert found.ownership is None


def test_heads_that_it_does_not_do() -> None:
    columns, go = games.make("connect_four"), games.make("go", size=5)
    assert folded(columns, 4, 4, 4, (), "relu", "float32").weights() is None
    heads = folded(go, 16, 16, 4, (), "relu", "float32")
    weights, x = heads.weights(), jnp.zeros((1, 5, 5, 48))
    assert weights is not None
    assert gpu.suits_heads(x, weights)
    assert not gpu.suits_heads(x, weights._replace(points=jnp.zeros((16, 5))))
    assert not gpu.suits_heads(x, weights._replace(extra=jnp.zeros((48, 5))))
    assert not gpu.suits_heads(x, weights._replace(hidden=jnp.zeros((3 * 131, 200)), hidden_bias=jnp.zeros(200)))
    assert not gpu.suits_heads(x, weights._replace(hidden=jnp.zeros((48, 2048)), hidden_bias=jnp.zeros(2048)))


def test_heads_that_need_more_shared_memory_than_there_is() -> None:
    def suits(side: int, width: int) -> bool:
        x = jax.ShapeDtypeStruct((1, side, side, 3 * width), jnp.bfloat16)
        shapes = (3 * width,), (3 * width, width), (width, 2), (3 * width, 2), (3 * width, 256), (256,), (width, 1)
        return gpu.suits_heads(x, gpu.HeadWeights(*(jax.ShapeDtypeStruct(s, jnp.bfloat16) for s in shapes)))  # type: ignore[arg-type]

    assert suits(9, 256)
    assert suits(19, 128)
    assert not suits(19, 256)  # 57 KiB


# Scale, shift and activation


def test_scale_and_shift_as_by_hand_where_rows_do_not_fill_the_last_block() -> None:
    numbers = np.random.default_rng(0)
    x = numbers.normal(size=(3, 5, 5, 96)).astype(np.float32)
    scale, shift = numbers.normal(size=(2, 96)).astype(np.float32)
    run = jax.jit(lambda *args: gpu.affine(*args, activation="relu"))
    assert gpu.suits_affine(jnp.asarray(x))
    np.testing.assert_allclose(run(x, scale, shift), np.maximum(x * scale + shift, 0), rtol=1e-5, atol=1e-6)
    assert not gpu.suits_affine(jnp.zeros((1, 1, 1, 41)))
    huge: Any = jax.ShapeDtypeStruct((2**15, 16, 16, 2**8), jnp.bfloat16)
    assert not gpu.suits_affine(huge)


def test_where_a_folded_network_may_use_programs() -> None:
    """Scale and shift before each of three blocks and the heads, a pooling block, the heads; or none at all."""
    game = games.make("go", size=9)

    def programs(kernels: bool) -> list[str]:
        net = nnx.eval_shape(lambda: nets.fold(nets.build(nets.spec("b3c96"), game, nnx.Rngs(0)), kernels=kernels))
        graph, state = nnx.split(net)
        inputs: Any = jax.ShapeDtypeStruct((4, *game.planes_shape), bool), jax.ShapeDtypeStruct((4, 11), jnp.float32)
        look = jax.jit(lambda state, *inputs: nnx.merge(graph, state)(*inputs))
        return re.findall(r"entry='(\w+)'", str(look.trace(state, *inputs).jaxpr))

    found = programs(kernels=True)
    assert found.count("affine") == 4
    assert "heads" in found
    assert "pool_bias" in found
    assert not programs(kernels=False)
