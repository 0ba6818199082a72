"""Learning in order from rows on the host, and judging without learning."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import nets, train
from tengen.data.format.rows import unpack_planes
from tengen.games.core import Game
from tengen.train import losses
from tests.helpers.train_samples import BATCH, QUICK, tiny_settings

KEY = jax.random.key(3)


@pytest.fixture(scope="module")
def host(rows: Any) -> dict[str, np.ndarray]:
    return {name: np.asarray(values) for name, values in rows.items()}


def cut(rows: dict[str, Any], start: int, end: int) -> dict[str, Any]:
    return {name: values[start:end] for name, values in rows.items()}


@pytest.fixture(scope="module")
def looping(game: Game, net: nets.Network) -> train.Learner:
    """As on an accelerator: a block of batches in one program."""
    made = train.Learner(net, game, tiny_settings(), compiler_options=QUICK)
    made._loops = True
    return made


@pytest.mark.slow
def test_in_order_is_step_by_step(learner: train.Learner, net: nets.Network, host: Any, same: Any) -> None:
    together, sums = learner.in_order(learner.start(net), host, KEY, 3)
    apart, figures = learner.start(net), []
    for number in range(3):
        apart, found = learner.step(apart, cut(host, BATCH * number, BATCH * (number + 1)), KEY)
        figures.append(found)
    same(together, apart)
    assert int(together.step) == 3
    for name, total in sums.items():
        np.testing.assert_allclose(total, sum(float(each[name]) for each in figures), rtol=1e-5)


def test_a_block_gives_the_same(
    learner: train.Learner, looping: train.Learner, net: nets.Network, host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tengen.train.learner._BLOCK", 4)
    assert (looping.block, learner.block) == (4, 1)
    one, expected = learner.in_order(learner.start(net), host, KEY, 3)
    other, sums = looping.in_order(looping.start(net), host, KEY, 3)  # three of the four batches; the rest is not seen
    assert int(other.step) == 3
    for name, total in sums.items():
        np.testing.assert_allclose(total, expected[name], rtol=2e-2, err_msg=name)
    for name, values in one.average_parameters.items():
        np.testing.assert_allclose(other.average_parameters[name], values, atol=5e-3, err_msg=name)
    # Fewer rows than a block has: what fills it up counts for nothing.
    short, less = looping.in_order(looping.start(net), cut(host, 0, 2 * BATCH), KEY, 2)
    assert int(short.step) == 2
    again, full = looping.in_order(looping.start(net), host, KEY, 2)
    for name, total in less.items():
        np.testing.assert_array_equal(total, full[name])
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(short), jax.device_get(again))


@pytest.mark.slow
def test_judging_by_hand(learner: train.Learner, net: nets.Network, host: Any, game: Game, same: Any) -> None:
    state, _ = learner.in_order(learner.start(net), host, KEY, 3)
    before = jax.device_get(state)
    batch = cut(host, 0, BATCH)
    batch["weight"] = np.where(np.arange(BATCH) < 5, batch["weight"], 0).astype(np.float32)
    found = learner.judge(state, batch)
    same(jax.device_get(state), before)
    averaged = learner.network(state)
    planes = unpack_planes(jnp.asarray(batch["planes"]), game.planes_shape)
    scalars = jnp.asarray(batch["scalars"])
    outputs = jax.jit(lambda *seen: averaged(*seen))(planes, scalars)
    rows, settings = {**batch, "planes": planes}, learner.settings.loss
    _, expected = losses.losses(outputs, rows, settings, game.extra_targets, game.halves_draws)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=2e-2, err_msg=name)
    assert float(found["rows"]) == 5
    newest = learner.network(state, average=False)
    outputs = jax.jit(lambda *seen: newest(*seen))(planes, scalars)
    _, other = losses.losses(outputs, rows, settings, game.extra_targets, game.halves_draws)
    assert abs(float(other["loss"]) - float(found["loss"])) > abs(float(expected["loss"]) - float(found["loss"]))


@pytest.fixture
def trainer(game: Game, learner: train.Learner, monkeypatch: pytest.MonkeyPatch) -> train.AlphaZeroTrainer:
    monkeypatch.setattr("tengen.train.alpha_zero.Learner", lambda *_: learner)
    spec = nets.spec("b1c4-nogp", nets.possible_heads(game))
    return train.AlphaZeroTrainer(train.AlphaZeroConfig(game, spec, tiny_settings()))


def blocks(rows: dict[str, Any], count: int) -> Iterator[dict[str, Any]]:
    return (cut(rows, BATCH * number, BATCH * (number + 1)) for number in range(count))


def test_the_trainer_learns_what_it_has_earned(trainer: train.AlphaZeroTrainer, host: Any) -> None:
    assert trainer.affordable == 0
    trainer.earn(12)  # two samples per row, eight in a batch
    assert trainer.affordable == 3
    figures = trainer.learn(blocks(host, 2))
    assert (trainer.step, trainer.samples, trainer.bucket.level, trainer.bucket.rows) == (2, 16, 8, 12)
    assert figures["samples"] == 16
    assert figures["loss"] > 0
    assert trainer.learn(iter(())) == {}
    assert trainer.step == 2
    trainer.earn(0)
    assert trainer.affordable == 1
    with pytest.raises(ValueError, match="at most 1 steps"):
        trainer.learn(blocks(host, 2))


def test_figures_are_means_over_the_steps(trainer: train.AlphaZeroTrainer, host: Any, learner: train.Learner) -> None:
    trainer.earn(100)
    start = jax.tree.map(jnp.copy, trainer.state)
    found = trainer.learn(blocks(host, 3))
    _, sums = learner.in_order(start, host, trainer._key, 3)
    assert found["loss"] == pytest.approx(float(sums["loss"]) / 3, rel=1e-3)


def test_validation_weighs_batches_by_their_rows(trainer: train.AlphaZeroTrainer, host: Any) -> None:
    assert trainer.validate([]) == {}
    first, last = cut(host, 0, BATCH), {name: values.copy() for name, values in cut(host, BATCH, 2 * BATCH).items()}
    last["weight"][2:] = 0
    one, other = (trainer.validate([each])["loss"] for each in (first, last))
    assert trainer.validate([first, last])["loss"] == pytest.approx((8 * one + 2 * other) / 10, rel=1e-5)
    nothing = {name: np.zeros_like(values) for name, values in first.items()}
    assert trainer.validate([nothing]) == {}
    assert trainer.validate([first, nothing])["loss"] == pytest.approx(one)
    assert trainer.step == 0
