"""A network computes what KataGo's would, whatever it is made of, and nothing outside the board matters."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import Array

from tengen import games, nets
from tengen.errors import OptionError
from tengen.nets.blocks import BlockChain, NestedBlock, PoolChain, Residual
from tengen.nets.network import BoardNetwork
from tests.oracles.katago_net import Forward, conv

GO = games.make("go", size=5)
PLANES, SCALARS = GO.planes_shape[2], GO.num_scalars
EVERYTHING = "b1c8nbt-xt2-se2"  # nested, pooling, grouped convolutions, squeeze-and-excitation


def positions(batch: int, side: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random planes, all on the board, and scalars."""
    numbers = np.random.default_rng(seed)
    planes = numbers.random((batch, side, side, PLANES)) < 0.4
    planes[..., 0] = True
    return planes, numbers.normal(size=(batch, SCALARS)).astype(np.float32)


def padded(planes: np.ndarray, side: int, seed: int = 1) -> np.ndarray:
    """The boards in the corner of larger ones, with garbage on the planes outside."""
    batch, height, width, channels = planes.shape
    larger = np.random.default_rng(seed).random((batch, side, side, channels)) < 0.5
    larger[..., 0] = False
    larger[:, :height, :width] = planes
    return larger


# Against KataGo's description


def as_katago(net: BoardNetwork) -> dict[str, Any]:
    """The weights under the names of KataGo's model file."""

    def array(variable: Any) -> np.ndarray:
        return np.asarray(variable[...], np.float64)

    def bn(norm: Any) -> tuple[np.ndarray, ...]:
        return array(norm.mean), array(norm.variance), array(norm.scale), array(norm.shift)

    def dense(layer: Any) -> tuple[np.ndarray, np.ndarray]:
        return array(layer.kernel), array(layer.bias)

    def block(residual: Residual) -> dict[str, Any]:
        branch = residual.branch
        if isinstance(branch, BlockChain):
            first, second = branch.steps
            convs = {"conv1": array(first.conv.kernel), "conv2": array(second.conv.kernel)}
            return {"kind": "ordinary", "bn1": bn(first.norm), "bn2": bn(second.norm), **convs}
        if isinstance(branch, PoolChain):
            pool, kernel = branch.pool, array(branch.first.conv.kernel)
            return {
                "kind": "gpool",
                "bn1": bn(branch.first.norm),
                "regular": kernel[..., : pool.regular],
                "gpool": kernel[..., pool.regular :],
                "bn_pool": bn(pool.pooled_norm),
                "matmul": array(pool.dense.kernel),
                "bn2": bn(pool.norm),
                "conv2": array(branch.second.kernel),
            }
        assert isinstance(branch, NestedBlock)
        return {
            "kind": "nested_bottleneck",
            "bn1": bn(branch.down.norm),
            "conv1": array(branch.down.conv.kernel),
            "inner": [block(inner) for inner in branch.inner],
            "bn2": bn(branch.up.norm),
            "conv2": array(branch.up.conv.kernel),
        }

    heads = net.heads
    policy, value = heads.policy, heads.value
    p1, g1, v1 = np.split(array(heads.neck.kernel), [policy.pool.regular, 2 * policy.pool.regular], -1)
    hidden, bias = dense(value.hidden)
    stem: Any = net.stem
    return {
        "stem": array(stem.conv.kernel),
        "scalars": array(stem.scalars.kernel),
        "blocks": [block(residual) for residual in net.blocks],
        "tip": bn(heads.tip),
        "policy": {
            "p1": p1,
            "g1": g1,
            "bn_pool": bn(policy.pool.pooled_norm),
            "matmul": array(policy.pool.dense.kernel),
            "bn": bn(policy.pool.norm),
            "p2": array(policy.points.kernel),
            "pass": array(policy.extra.kernel),
        },
        "value": {
            "v1": v1,
            "bn": bn(value.norm),
            "matmul": hidden,
            "bias": bias,
            "logits": dense(value.summary.value),
            "score": dense(value.summary.score),
            "moves_left": dense(value.summary.moves_left),
            "ownership": array(value.ownership.kernel),
        },
    }


@pytest.mark.parametrize("name", ["b2c8", "b1c8nbt-mish"])
def test_the_same_as_katago_in_loops(random_net: Any, look: Any, name: str) -> None:
    net = random_net(name, GO, nets.HEADS, full_board=False)
    planes, scalars = positions(2, 5)
    planes = np.concatenate([padded(planes[:1, :4, :3], 5), planes[1:]])
    found = look(net, planes, scalars)._asdict()
    oracle = Forward(as_katago(net), net.spec.activation)
    for number in range(2):
        on = np.append(planes[number, :, :, 0].reshape(-1), True)
        for head, expected in oracle(planes[number], scalars[number]).items():
            mine = np.asarray(found[head][number])
            if "policy" in head:
                assert np.all(mine[~on] == nets.OFF_BOARD)
                mine, expected = mine[on], expected[on]
            np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-4, err_msg=head)


# Boards of several sizes


def test_a_small_board_in_a_large_one_is_a_small_board(random_net: Any, look: Any) -> None:
    net = random_net(EVERYTHING, GO, ("ownership", "opponent_policy"), full_board=True)
    planes, scalars = positions(3, 5)
    alone = look(net, planes, scalars)
    net.full_board = False
    for seed in (1, 2):
        inside = look(net, padded(planes, 7, seed), scalars)
        corner = np.append((np.arange(7)[:5, None] * 7 + np.arange(5)).reshape(-1), 49)
        assert inside.ownership is not None
        assert np.all(np.asarray(inside.ownership)[:, 5:] == 0)
        assert np.all(np.asarray(inside.ownership)[:, :, 5:] == 0)
        small = inside._replace(
            policy=inside.policy[:, corner],
            opponent_policy=None if inside.opponent_policy is None else inside.opponent_policy[:, corner],
            ownership=inside.ownership[:, :5, :5],
        )
        jax.tree.map(lambda mine, other: np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-5), small, alone)


_train = nnx.jit(lambda net, planes, scalars: net(planes, scalars, train=True))


def test_statistics_count_the_points_on_the_board(random_net: Any) -> None:
    planes, scalars = positions(2, 5)
    alone, inside = (random_net("b1c8", GO, nets.HEADS, full_board=full) for full in (True, False))
    _train(alone, planes, scalars)
    _train(inside, padded(planes, 6), scalars)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5),
        nnx.state(inside, nnx.BatchStat),
        nnx.state(alone, nnx.BatchStat),
    )


# Training and transformations


def test_training_moves_the_statistics_towards_the_batch(random_net: Any) -> None:
    """The first norm sees the stem's output: after one batch its running mean has moved a hundredth of the way."""
    net = random_net("b1c8", GO, nets.HEADS)
    planes, scalars = positions(2, 5)
    weights = as_katago(net)
    seen = np.stack(
        [conv(p.astype(float), weights["stem"]) + s @ weights["scalars"] for p, s in zip(planes, scalars, strict=True)]
    )
    mean, variance, *_ = weights["blocks"][0]["bn1"]
    before = jax.tree.map(np.asarray, nnx.state(net, nnx.BatchStat))
    _train(net, planes, scalars)
    after = nnx.state(net, nnx.BatchStat)
    assert min(jax.tree.leaves(jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), after, before))) > 0
    norm = net.blocks[0].branch.first.norm
    np.testing.assert_allclose(norm.mean[...], mean + 0.01 * (seen.mean((0, 1, 2)) - mean), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(norm.variance[...], variance + 0.01 * (seen.var((0, 1, 2)) - variance), rtol=1e-4)


def test_looking_changes_nothing(random_net: Any) -> None:
    net = random_net("b1c8", GO)
    before = jax.tree.map(np.asarray, nnx.state(net))
    nnx.jit(lambda net, planes, scalars: net(planes, scalars))(net, *positions(2, 5))
    jax.tree.map(np.testing.assert_array_equal, nnx.state(net), before)


@pytest.mark.slow
def test_a_new_network_learns_everywhere(quick_jit: Any) -> None:
    spec = nets.spec(EVERYTHING, nets.HEADS)
    net = nets.build(spec, GO, nnx.Rngs(0), dtype="float32")
    assert nets.parameter_count(net) == nets.parameter_count(nets.shapes(spec, GO))
    graph, parameters, rest = nnx.split(net, nnx.Param, ...)
    planes, scalars = positions(2, 5)

    @quick_jit
    @jax.grad
    def gradient(parameters: Any) -> Array:
        net = nnx.merge(graph, parameters, rest, copy=True)
        outputs = net(jnp.asarray(planes), jnp.asarray(scalars), train=True)
        wave = [jnp.sum(x * jnp.cos(jnp.arange(x.size)).reshape(x.shape)) for x in jax.tree.leaves(outputs)]
        return jnp.stack(wave).sum()

    for path, found in jax.tree_util.tree_leaves_with_path(gradient(parameters)):
        assert jnp.isfinite(found).all(), path
        assert float(jnp.abs(found).max()) > 1e-6, path


@pytest.mark.slow
def test_it_can_be_mapped_over_networks(random_net: Any, look: Any, quick_jit: Any) -> None:
    net = random_net("b1c8", GO)
    graph, state = nnx.split(net)
    planes, scalars = positions(2, 5)
    both = jax.tree.map(lambda x: jnp.stack([x, 2 * x]), state)
    inputs = jnp.asarray(planes), jnp.asarray(scalars)
    mapped = quick_jit(jax.vmap(lambda state: nnx.merge(graph, state)(*inputs)))(both)
    np.testing.assert_allclose(mapped.policy[0], look(net, planes, scalars).policy, rtol=1e-5, atol=1e-5)
    assert float(jnp.abs(mapped.policy[1] - mapped.policy[0]).max()) > 0.1


def test_bfloat16_is_close_and_gives_float32(random_net: Any, look: Any) -> None:
    planes, scalars = positions(2, 5)
    precise, rough = (look(random_net("b1c8", GO, dtype=t), planes, scalars) for t in ("float32", "bfloat16"))
    for mine, other in zip(jax.tree.leaves(rough), jax.tree.leaves(precise), strict=True):
        assert mine.dtype == jnp.float32
        assert 0 < float(jnp.abs(mine - other).max()) < 0.05 * float(jnp.abs(other).max())


# Every game


def _games() -> list[games.Game]:
    return [games.make(name) for name in games.names()] + [games.make("hex", swap=True)]


@pytest.mark.slow
@pytest.mark.parametrize("game", _games(), ids=lambda game: f"{game.name}-{game.num_actions}")
@pytest.mark.parametrize("with_heads", [False, True], ids=["plain", "heads"])
def test_shapes_smoke(game: games.Game, with_heads: bool) -> None:
    height, width, planes = game.planes_shape
    heads = nets.possible_heads(game) if with_heads else ()
    spec = nets.spec("b1c8" if planes else "mlp2x8", heads)

    def outputs() -> nets.Outputs:
        net = nets.build(spec, game, nnx.Rngs(0))
        return net(jnp.zeros((3, *game.planes_shape), bool), jnp.zeros((3, game.num_scalars)))

    found = {name: value for name, value in jax.eval_shape(outputs)._asdict().items() if value is not None}
    every = {
        "policy": (3, game.num_actions),
        "value": (3, 3),
        "ownership": (3, height, width),
        "score": (3, 2),
        "opponent_policy": (3, game.num_actions),
        "moves_left": (3,),
    }
    assert {name: value.shape for name, value in found.items()} == {
        name: shape for name, shape in every.items() if name in ("policy", "value", *heads)
    }
    assert all(value.dtype == jnp.float32 for value in found.values())


def test_a_column_depends_on_its_own_column_most(random_net: Any, look: Any) -> None:
    """In connect four the seventh of the policy is the seventh column: mirrored boards give mirrored policies."""
    game = games.make("connect_four")
    net = random_net("b1c8", game)
    # A kernel that is its own mirror image makes the whole network symmetric.
    for _, module in nnx.iter_modules(net):
        kernel = getattr(module, "kernel", None)
        if kernel is not None and kernel.ndim == 4 and kernel.shape[0] == 3:
            kernel[...] = kernel[...] + kernel[:, ::-1]
    planes = np.random.default_rng(0).random((2, *game.planes_shape)) < 0.5
    straight = look(net, planes, np.zeros((2, 0), np.float32))
    mirrored = look(net, planes[:, :, ::-1], np.zeros((2, 0), np.float32))
    np.testing.assert_allclose(mirrored.policy, straight.policy[:, ::-1], rtol=1e-4, atol=1e-5)
    assert float(jnp.std(straight.policy)) > 0.01


def test_layers_for_games_without_a_board(random_net: Any) -> None:
    game = games.make("hironaka")
    net = random_net("mlp2x8-silu", game, ("opponent_policy",))
    scalars = np.random.default_rng(0).normal(size=(3, game.num_scalars)).astype(np.float32)
    found = net(jnp.zeros((3, 1, 1, 0), bool), jnp.asarray(scalars))
    x = scalars.astype(float)
    for layer in net.layers:
        x = x @ np.asarray(layer.kernel[...]) + np.asarray(layer.bias[...])
        x = x / (1 + np.exp(-x))
    policies = x @ np.asarray(net.policy.kernel[...]) + np.asarray(net.policy.bias[...])
    np.testing.assert_allclose(found.policy, policies[:, : game.num_actions], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.opponent_policy, policies[:, game.num_actions :], rtol=1e-4, atol=1e-5)
    last = net.summary.value
    np.testing.assert_allclose(found.value, x @ np.asarray(last.kernel[...]) + last.bias[...], rtol=1e-4, atol=1e-5)


def test_a_folded_network_is_not_trained(random_net: Any) -> None:
    net = random_net("b1c8", GO)
    net.folded = True
    with pytest.raises(OptionError, match="a folded network cannot be trained"):
        net(*positions(1, 5), train=True)


def test_a_new_network_expects_draws_only_where_they_are_learned() -> None:
    for name, low, high in (("go", 0.0, 1e-5), ("tic_tac_toe", 0.01, 0.99)):
        game = games.make(name, **({"size": 3} if name == "go" else {}))
        net = nets.build(nets.spec("b1c8"), game, nnx.Rngs(0), dtype="float32")
        planes, scalars = np.ones((2, *game.planes_shape), bool), np.ones((2, game.num_scalars), np.float32)
        draws = np.asarray(jax.nn.softmax(jax.jit(lambda net, *x: net(*x).value)(net, planes, scalars)))[:, 1]
        assert ((draws >= low) & (draws < high)).all(), name
