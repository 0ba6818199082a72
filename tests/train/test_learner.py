"""The training step: pure, the same in a loop, on one device and on four, and forgiving of a bad batch."""

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import games, nets, train
from tengen.errors import OptionError
from tengen.games.core import Game
from tengen.nets import saving
from tests.helpers import paths
from tests.helpers.train_samples import BATCH, QUICK, pick, random_rows, tiny_settings

KEY = jax.random.key(3)


def first(rows: dict[str, jax.Array], number: int = BATCH) -> dict[str, jax.Array]:
    return {name: values[:number] for name, values in rows.items()}


def test_many_steps_are_single_steps_one_after_the_other(
    learner: train.Learner, net: nets.Network, rows: Any, same: Any
) -> None:
    together, figures = learner.many(learner.start(net), KEY, pick, rows, 3)
    apart = learner.start(net)
    losses = []
    for _ in range(3):
        apart, found = learner.many(apart, KEY, pick, rows, 1)
        losses.append(float(found["loss"]))
    same(together, apart)
    assert int(together.step) == 3
    np.testing.assert_allclose(float(figures["loss"]), np.mean(losses), rtol=1e-6)
    assert len(set(losses)) == 3, "each step draws a batch of its own"


def test_it_learns_a_batch_by_heart(learner: train.Learner, net: nets.Network, rows: Any) -> None:
    state, before = learner.step(learner.start(net), first(rows), KEY)
    after = before
    for _ in range(60):
        state, after = learner.step(state, first(rows), KEY)
    assert float(after["loss"]) < 0.8 * float(before["loss"])
    assert float(after["value_loss"]) < 0.7 * float(before["value_loss"])
    assert {str(leaf.dtype) for leaf in state.parameters.values()} == {"float32"}, "only computing is in bfloat16"


def test_averages_follow_parameters_and_statistics(learner: train.Learner, net: nets.Network, rows: Any) -> None:
    state = learner.start(net)
    expected = {name: np.asarray(x) for name, x in (state.average_parameters | state.average_statistics).items()}
    for step in range(3):
        state, _ = learner.step(state, first(rows), KEY)
        decay = min(0.9, (1 + step) / (10 + step))
        now = state.parameters | state.statistics
        expected = {name: decay * x + (1 - decay) * np.asarray(now[name]) for name, x in expected.items()}
    found = state.average_parameters | state.average_statistics
    assert set(found) == set(expected)
    for name, x in found.items():
        np.testing.assert_allclose(x, expected[name], rtol=1e-5, atol=1e-6, err_msg=name)
    moved = [
        name
        for name, x in state.statistics.items()
        if not np.allclose(x, np.asarray(learner.start(net).statistics[name]))
    ]
    assert len(moved) == len(state.statistics), "every norm has seen the batch"


@pytest.mark.slow
def test_weights_that_were_handed_out_survive_the_next_step(
    learner: train.Learner, net: nets.Network, rows: Any, game: Game
) -> None:
    state = learner.start(net)
    averaged, newest = learner.network(state), learner.weights(state, average=False)
    state, _ = learner.step(state, first(rows), KEY)
    before = saving.named(newest)
    assert not np.allclose(before["stem.conv.kernel"], state.parameters["stem.conv.kernel"])
    np.testing.assert_array_equal(before["stem.conv.kernel"], net.stem.conv.kernel[...])
    outputs = averaged(jnp.ones((1, *game.planes_shape), bool), jnp.zeros((1, game.num_scalars)))
    assert np.isfinite(np.asarray(outputs.policy)).all()


def test_a_batch_that_is_not_finite_changes_nothing(
    learner: train.Learner, net: nets.Network, rows: Any, same: Any
) -> None:
    state, _ = learner.step(learner.start(net), first(rows), KEY)
    before = jax.tree.map(np.array, state)
    bad = {**first(rows), "scalars": first(rows)["scalars"].at[0, 0].set(jnp.nan)}
    state, figures = learner.step(state, bad, KEY)
    assert float(figures["skipped"]) == 1
    same(
        (state.parameters, state.statistics, state.optimizer), (before.parameters, before.statistics, before.optimizer)
    )
    state, figures = learner.step(state, first(rows), KEY)
    assert float(figures["skipped"]) == 0
    assert np.isfinite(float(figures["loss"]))


def test_a_variance_that_overflows_while_the_loss_is_finite_changes_nothing(
    learner: train.Learner, net: nets.Network, rows: Any, same: Any
) -> None:
    state = learner.start(net)
    huge = {**state.parameters, "stem.conv.kernel": state.parameters["stem.conv.kernel"] * 1e19}
    before = jax.tree.map(np.array, state._replace(parameters=huge))
    state, figures = learner.step(learner.place(before), first(rows), KEY)
    assert float(figures["skipped"]) == 1
    same((state.parameters, state.statistics), (before.parameters, before.statistics))
    assert all(np.isfinite(x).all() for x in state.average_statistics.values())


def test_rows_without_a_target_are_refused(learner: train.Learner, net: nets.Network, rows: Any) -> None:
    with pytest.raises(OptionError, match="rows without score cannot teach this network"):
        learner.step(learner.start(net), {k: v for k, v in first(rows).items() if k != "score"}, KEY)


def test_a_folded_network_and_a_batch_that_cannot_be_split_are_refused(game: Game, net: nets.Network) -> None:
    with pytest.raises(OptionError, match="a folded network cannot be trained"):
        train.Learner(nets.fold(net), game, tiny_settings())
    with pytest.raises(OptionError, match=r"train.batch: expected a multiple of the 3 devices, got 8"):
        train.Learner(net, game, tiny_settings(), devices=[jax.devices()[0]] * 3)


@pytest.mark.slow
def test_a_game_without_a_board() -> None:
    from flax import nnx

    game = games.make("hironaka")
    net = nets.build(nets.spec("mlp1x8"), game, nnx.Rngs(0), dtype="float32")
    learner = train.Learner(net, game, tiny_settings(), compiler_options=QUICK)
    batch = {name: jnp.asarray(x) for name, x in random_rows(game, BATCH).items()}
    state, figures = learner.step(learner.start(net), batch, KEY)
    assert np.isfinite(float(figures["loss"]))
    assert float(figures["skipped"]) == 0
    assert state.statistics == {}


DEVICES = """
import sys
from dataclasses import replace
import jax, jax.numpy as jnp
from flax import nnx
from tests.helpers.train_samples import QUICK, pick, random_rows, tiny_settings
from tengen import games, nets, train

assert len(jax.devices()) == 8
game = games.make("go", size=3)
heads = nets.possible_heads(game)
net = nets.build(nets.spec("b1c4", heads), game, nnx.Rngs(0), dtype="float32")
settings = tiny_settings()
# AdamW would enlarge the rounding errors of gradients that are almost 0.
settings = replace(settings, optimizer=replace(settings.optimizer, kind="sgd"))
for count in (1, 8):
    learner = train.Learner(net, game, settings, jax.devices()[:count], QUICK)
    data = jax.device_put(random_rows(game, 32, heads), learner.everywhere)
    state = learner.start(net)
    for _ in range(3):
        state, figures = learner.many(state, jax.random.key(0), pick, data, 2)
        print("LOSS", count, *(float(figures[name]) for name in sorted(figures)))
    shards = state.parameters["stem.conv.kernel"].sharding
    print("DEVICES", len(shards.device_set), shards.is_fully_replicated)
    print("STATE", count, *(float(abs(x).sum()) for x in jax.tree.leaves((state.parameters, state.statistics))))
"""


@pytest.mark.slow
def test_one_and_eight_devices_give_the_same_losses_and_parameters() -> None:
    environment = {
        **os.environ,
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8",
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir),
        "PYTHONPATH": paths.IMPORTABLE,
    }
    done = subprocess.run([sys.executable, "-c", DEVICES], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[1:] for line in lines if line[0] == "DEVICES"] == [["1", "True"], ["8", "True"]]
    for kind, times in (("LOSS", 3), ("STATE", 1)):
        one, eight = (
            np.array([[float(x) for x in line[2:]] for line in lines if line[:2] == [kind, count]]) for count in "18"
        )
        assert one.shape[0] == times
        np.testing.assert_allclose(eight, one, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_the_optimisers_numbers_change_without_compiling(
    learner: train.Learner, game: Game, net: nets.Network, rows: dict[str, jax.Array], same: Any
) -> None:
    settings = tiny_settings()
    numbers = {"learning_rate": 0.01, "momentum": 0.5, "weight_decay": 0.1, "clip": 0.01}
    other = replace(settings, optimizer=replace(settings.optimizer, **numbers), average_decay=0.5)
    key = jax.random.key(3)
    learner.step(learner.start(net), rows, key)
    compiled = learner._step._cache_size()
    changed = learner.changed(other)
    found, figures = changed.step(learner.start(net), rows, key)
    assert changed.shares_programs(learner)
    assert learner._step._cache_size() == compiled
    assert float(figures["learning_rate"]) == pytest.approx(0.01 * float(changed._factor(0)))
    plain, _ = learner.step(learner.start(net), rows, key)
    assert learner.settings == settings, "the learner itself stays as it is"
    moved = jax.tree.map(lambda a, b: float(np.abs(a - b).max()), found.parameters, plain.parameters)
    assert max(moved.values()) > 0
    again = changed.changed(settings).step(learner.start(net), rows, key)[0]
    same(again, plain)


def test_other_settings_are_compiled_anew(learner: train.Learner) -> None:
    settings = tiny_settings()
    for other in (
        replace(settings, schedule=replace(settings.schedule, warmup=7)),
        replace(settings, loss=replace(settings.loss, value=0.5)),
    ):
        changed = learner.changed(other)
        assert not changed.shares_programs(learner)
        assert changed.settings == other
