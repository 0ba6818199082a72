"""Averaged weights have statistics of their own, so that they play as well as they have learned."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import nets, train
from tengen.data.format.rows import unpack_planes
from tengen.games.core import Game
from tengen.nets import saving
from tengen.train.learner import Learner
from tengen.train.state import LearnerState
from tests.helpers.custom_nets import TINY
from tests.helpers.train_samples import BATCH, QUICK, pick, random_rows, tiny_settings

KEY = jax.random.key(3)


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tengen.train.learner._SETTLING_ROWS", 2 * BATCH)


@pytest.fixture(scope="module")
def plain(game: Game, net: nets.Network) -> Learner:
    """Without symmetries, so that the rows are known."""
    return Learner(net, game, replace(tiny_settings(), symmetries=False), compiler_options=QUICK)


def cut(rows: dict[str, Any], count: int) -> dict[str, Any]:
    return {name: values[:count] for name, values in rows.items()}


def long_averages(learner: Learner, state: LearnerState, rows: Any, game: Game) -> dict[str, np.ndarray]:
    """Statistics as the norms find them when the averaged weights see the same rows again and again."""

    @jax.jit
    def seen(state: Any) -> Any:
        net = nnx.merge(learner.graph, state)
        net(unpack_planes(jnp.asarray(rows["planes"]), game.planes_shape), jnp.asarray(rows["scalars"]), train=True)
        return nnx.state(net)

    now = learner.weights(state)
    for _ in range(1500):
        now = seen(now)
    return {name: np.asarray(x) for name, x in saving.named(now).items() if name in state.statistics}


def test_settled_statistics_are_those_of_the_averaged_weights(
    plain: Learner, net: nets.Network, rows: Any, game: Game
) -> None:
    assert plain.settling_rows == 2 * BATCH
    state = plain.start(net)
    for _ in range(5):
        state, _ = plain.step(state, cut(rows, BATCH), KEY)
    before = jax.tree.map(np.array, state)
    state = plain.settle(state, cut(rows, 2 * BATCH), KEY)
    expected = long_averages(plain, state, cut(rows, 2 * BATCH), game)
    assert expected.keys() == state.average_statistics.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(state.average_statistics[name], values, rtol=1e-3, atol=1e-4, err_msg=name)
        assert not np.allclose(values, before.average_statistics[name], rtol=1e-2, atol=1e-3), "nothing was mended"
    others = [field for field in before._fields if field != "average_statistics"]
    for field in others:
        jax.tree.map(np.testing.assert_array_equal, getattr(before, field), jax.device_get(getattr(state, field)))


def test_rows_that_are_drawn_settle_as_given_ones_do(plain: Learner, net: nets.Network, rows: Any) -> None:
    state, _ = plain.many(plain.start(net), KEY, pick, rows, 3)
    drawn = pick(rows, jax.random.fold_in(jax.random.fold_in(KEY, 3), 3), 2 * BATCH)
    before = jax.device_get(state.average_statistics)
    found = jax.device_get(plain.settle_drawn(jax.tree.map(jnp.copy, state), KEY, pick, rows).average_statistics)
    expected = plain.settle(state, drawn, KEY).average_statistics
    for name, values in found.items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-3, atol=1e-4, err_msg=name)
        assert not np.allclose(values, before[name], rtol=1e-2, atol=1e-3), "nothing was mended"


def test_rows_that_are_not_finite_change_nothing(plain: Learner, net: nets.Network, rows: Any) -> None:
    state, _ = plain.step(plain.start(net), cut(rows, BATCH), KEY)
    before = jax.device_get(state.average_statistics)
    bad = cut(rows, 2 * BATCH)
    bad["scalars"] = bad["scalars"].at[0, 0].set(jnp.nan)
    state = plain.settle(state, bad, KEY)
    jax.tree.map(np.testing.assert_array_equal, before, jax.device_get(state.average_statistics))


@pytest.fixture
def trainer(game: Game, net: nets.Network, plain: Learner, monkeypatch: pytest.MonkeyPatch) -> train.AlphaZeroTrainer:
    monkeypatch.setattr("tengen.train.alpha_zero.Learner", lambda *_: plain)
    return train.AlphaZeroTrainer(train.AlphaZeroConfig(game, net.spec, plain.settings), pick)


def statistics(trainer: train.AlphaZeroTrainer) -> Any:
    return jax.device_get(trainer.state.average_statistics)


@pytest.mark.parametrize("use", ["weights", "network", "checkpoint"])
def test_a_trainer_settles_when_its_weights_are_used(trainer: train.AlphaZeroTrainer, rows: Any, use: str) -> None:
    start = statistics(trainer)
    trainer.weights()
    jax.tree.map(np.testing.assert_array_equal, start, statistics(trainer))  # nothing was learned yet
    trainer.feed(rows, 100)
    trainer.train(3)
    learned, state = statistics(trainer), jax.tree.map(jnp.copy, trainer.state)
    getattr(trainer, use)()
    settled = statistics(trainer)
    expected = trainer.learner.settle_drawn(state, trainer._key, pick, rows).average_statistics
    for name, values in settled.items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)
        assert not np.array_equal(values, learned[name])
    trainer.weights()
    jax.tree.map(np.testing.assert_array_equal, settled, statistics(trainer))  # once is enough


def test_learning_in_pieces_settles_once(
    trainer: train.AlphaZeroTrainer, rows: Any, plain: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    settle = plain.settle_drawn

    def counted(state: LearnerState, *more: Any) -> LearnerState:
        asked.append(int(state.step))
        return settle(state, *more)

    monkeypatch.setattr(plain, "settle_drawn", counted)
    trainer.feed(rows, 100)
    trainer.pieces(3, 1, lambda: False)
    trainer.weights()
    assert asked == [3]


def test_learning_from_the_host_settles_on_the_newest_rows(
    trainer: train.AlphaZeroTrainer, plain: Learner, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer.earn(100)
    host = {name: np.asarray(values) for name, values in rows.items()}
    blocks = [{name: values[i * BATCH : (i + 1) * BATCH] for name, values in host.items()} for i in range(4)]
    asked: list[np.ndarray] = []

    def settle(state: Any, rows: Any, key: Any) -> Any:
        asked.append(rows["ply"])
        return Learner.settle(plain, state, rows, key)

    monkeypatch.setattr(plain, "settle", settle)
    trainer.learn(iter(blocks[:1]))
    trainer.weights()
    assert not asked, "one batch is too little"
    trainer.learn(iter(blocks[1:4]))
    trainer.weights()
    assert len(asked) == 1
    np.testing.assert_array_equal(asked[0], host["ply"][2 * BATCH : 4 * BATCH])
    assert trainer.learn(iter(())) == {}
    trainer.weights()
    assert len(asked) == 1


def test_norms_of_flax_are_settled_and_dropout_is_left_alone(game: Game) -> None:
    own: Any = nets.build(nets.spec(TINY), game, nnx.Rngs(0), dtype="float32")
    learner = Learner(own, game, replace(tiny_settings(), symmetries=False), compiler_options=QUICK)
    rows = random_rows(game, 2 * BATCH)
    state, _ = learner.step(learner.start(own), cut(rows, BATCH), KEY)
    before = jax.device_get(state.average_statistics)
    state = learner.settle(state, rows, KEY)
    net: Any = learner.network(state)
    planes = unpack_planes(jnp.asarray(rows["planes"]), game.planes_shape)
    seen = net.module.conv(planes.astype(jnp.float32))
    name = next(name for name in before if name.endswith("norm.mean"))
    np.testing.assert_allclose(state.average_statistics[name], seen.mean((0, 1, 2)), rtol=1e-4, atol=1e-5)
    for other, values in before.items():
        if "norm" not in other:
            np.testing.assert_array_equal(jax.device_get(state.average_statistics[other]), values)
