"""The update of double DQN, against one in NumPy with gradients by hand."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.config.settings.roles import DQNRoleSettings
from tengen.nets.outputs import Outputs
from tengen.roles import rules
from tengen.roles.dqn import QLearner, QNetworks
from tengen.roles.replay import ReplaySample
from tengen.train import optimizers
from tengen.train.schedules import Schedule
from tests.helpers.toy_trainers import small

_SCALARS, _ACTIONS, _BATCH = 4, 5, 32


class Linear(nnx.Module):
    """Numbers per action and win, draw, loss, linear in the scalars."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.policy = nnx.Linear(_SCALARS, _ACTIONS, rngs=rngs)
        self.value = nnx.Linear(_SCALARS, 3, rngs=rngs)

    def __call__(self, planes: Any, scalars: Any) -> Outputs:
        return Outputs(self.policy(scalars), self.value(scalars))


def _batch(rng: np.random.Generator) -> dict[str, np.ndarray]:
    legal = rng.random((2, _BATCH, _ACTIONS)) < 0.5
    action = rng.integers(0, _ACTIONS, _BATCH)
    legal[0, np.arange(_BATCH), action] = True
    legal[1, :, 0] |= ~legal[1].any(1)
    done = rng.random(_BATCH) < 0.3
    legal[1] &= ~done[:, None]
    nothing = np.zeros((_BATCH, 1, 1, 0), bool)
    return {
        "planes": nothing,
        "next_planes": nothing,
        "scalars": rng.normal(size=(_BATCH, _SCALARS)).astype(np.float32),
        "next_scalars": rng.normal(size=(_BATCH, _SCALARS)).astype(np.float32),
        "legal": legal[0],
        "next_legal": legal[1],
        "action": action.astype(np.int32),
        "reward": rng.normal(size=_BATCH).astype(np.float32) * 2,
        "done": done,
    }


def _q(params: dict[str, np.ndarray], x: np.ndarray, legal: np.ndarray, dueling: bool) -> np.ndarray:
    """One position at a time."""
    advantages = x @ params["policy.kernel"] + params["policy.bias"]
    if not dueling:
        return advantages
    value = x @ params["value.kernel"] + params["value.bias"]
    mean = advantages[legal].mean() if legal.any() else 0.0
    return value[0] - value[2] + advantages - mean


def _slow(
    settings: DQNRoleSettings, params: dict[str, Any], target: dict[str, Any], rows: Any, weights: Any, rate: float
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray, float]:
    """After one step of plain gradient descent: parameters, target, errors, loss."""
    params = {name: np.asarray(leaf, np.float64) for name, leaf in params.items()}
    target = {name: np.asarray(leaf, np.float64) for name, leaf in target.items()}
    gradient = {name: np.zeros_like(leaf) for name, leaf in params.items()}
    errors, loss = np.zeros(_BATCH), 0.0
    for i in range(_BATCH):
        x, legal, action = rows["scalars"][i].astype(np.float64), rows["legal"][i], rows["action"][i]
        y = float(rows["reward"][i])
        if not rows["done"][i]:
            after, allowed = rows["next_scalars"][i].astype(np.float64), rows["next_legal"][i]
            online = _q(params if settings.double else target, after, allowed, settings.dueling)
            best = max(np.flatnonzero(allowed), key=lambda a: online[a])
            y += settings.gamma**settings.n_step * _q(target, after, allowed, settings.dueling)[best]
        error = _q(params, x, legal, settings.dueling)[action] - y
        errors[i], size = error, abs(error)
        delta = settings.huber
        loss += weights[i] * (0.5 * error**2 if size <= delta else delta * (size - 0.5 * delta)) / _BATCH
        slope = weights[i] * np.clip(error, -delta, delta) / _BATCH
        by_action = np.zeros(_ACTIONS)
        by_action[action] = 1.0
        if settings.dueling:
            by_action -= legal / legal.sum()
            by_value = np.array([1.0, 0.0, -1.0])
            gradient["value.kernel"] += slope * np.outer(x, by_value)
            gradient["value.bias"] += slope * by_value
        gradient["policy.kernel"] += slope * np.outer(x, by_action)
        gradient["policy.bias"] += slope * by_action
    length = np.sqrt(sum((g**2).sum() for g in gradient.values()))
    clip = settings.optimizer.clip
    shorter = 1.0 if clip is None or length < clip else clip / length
    new = {name: leaf - rate * shorter * gradient[name] for name, leaf in params.items()}
    return new, target, errors, loss


@pytest.mark.parametrize(
    ("dueling", "double", "clip", "n_step", "target"),
    [
        (False, True, None, 1, "host.target.kind=polyak"),
        (True, True, 0.05, 3, "host.target.kind=periodic"),
        (True, False, None, 2, "host.target.kind=polyak"),
    ],
)
def test_against_numpy(dueling: bool, double: bool, clip: float | None, n_step: int, target: str) -> None:
    rng = np.random.default_rng(n_step)
    config = small(target, "host.target.tau=0.3", "host.target.every=2", "host.optimizer.kind=sgd", "host.huber=0.7")
    assert config.host is not None
    optimizer = replace(config.host.optimizer, momentum=0.0, clip=clip)
    settings = replace(
        config.host, dueling=dueling, double=double, n_step=n_step, gamma=0.8, optimizer=optimizer, batch=_BATCH
    )
    net = Linear(nnx.Rngs(0))
    made = optimizers.make(settings.optimizer)
    rate = Schedule.of(kind="linear", initial=0.5, final=0.1, length=4)
    learner = QLearner(nnx.graphdef(net), (), settings, made, rate, Schedule.constant(1))
    params = rules.parameters(net)
    others = rules.parameters(Linear(nnx.Rngs(1)))
    found, slow, slow_target = QNetworks(params, others, made.init(params)), params, others
    learn = jax.jit(learner.learn)
    for step in range(3):
        rows, weights = _batch(rng), rng.random(_BATCH).astype(np.float32)
        drawn = ReplaySample(jax.tree.map(jnp.asarray, rows), jnp.zeros(_BATCH, jnp.int32), jnp.asarray(weights))
        found, errors, figures = learn(found, {}, drawn, jnp.int32(step))
        slow, slow_target, slow_errors, slow_loss = _slow(settings, slow, slow_target, rows, weights, 0.5 - 0.1 * step)
        if (step + 1) % 2 == 0:
            way = 0.3 if settings.target.kind == "polyak" else 1.0
            slow_target = {name: (1 - way) * leaf + way * slow[name] for name, leaf in slow_target.items()}
        np.testing.assert_allclose(errors, slow_errors, rtol=2e-4, atol=1e-5)
        assert float(figures["loss"]) == pytest.approx(slow_loss, rel=1e-4)
        for name, leaf in slow.items():
            np.testing.assert_allclose(found.parameters[name], leaf, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(found.target[name], slow_target[name], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_batch_norms_move_their_statistics_as_they_learn_and_hold_them_as_they_play() -> None:
    game = games.make("tic_tac_toe")
    net = nets.build(nets.spec("b1c8-nogp"), game, nnx.Rngs(0), dtype="float32")
    net.train()  # as `Trainer` does before it learns
    config = small("host.optimizer.kind=sgd", "host.target.kind=polyak", "host.target.tau=0.5", "host.target.every=1")
    assert config.host is not None
    made = optimizers.make(config.host.optimizer)
    params = rules.parameters(net)
    statistics = {name: leaf for name, leaf in params.items() if name.endswith((".mean", ".variance"))}
    learned = {name: leaf for name, leaf in params.items() if name not in statistics}
    learner = QLearner(
        nnx.graphdef(net), tuple(statistics), config.host, made, Schedule.constant(0.1), Schedule.constant(1)
    )
    rng = np.random.default_rng(0)
    shown = rng.random((2, 8, *game.planes_shape)) < 0.5
    rows = {
        "planes": shown[0],
        "next_planes": shown[1],
        "scalars": np.zeros((8, game.num_scalars), np.float32),
        "next_scalars": np.zeros((8, game.num_scalars), np.float32),
        "legal": np.ones((8, 9), bool),
        "next_legal": np.ones((8, 9), bool),
        "action": np.arange(8, dtype=np.int32),
        "reward": np.ones(8, np.float32),
        "done": np.ones(8, bool),
    }
    drawn = ReplaySample(jax.tree.map(jnp.asarray, rows), jnp.zeros(8, jnp.int32), jnp.ones(8))
    found, _, _ = jax.jit(learner.learn)(
        QNetworks(learned, params, made.init(learned)), statistics, drawn, jnp.int32(0)
    )
    assert found.others.keys() == statistics.keys()
    moved = [name for name in statistics if not np.array_equal(found.others[name], statistics[name])]
    assert len(moved) == len(statistics)
    assert not np.array_equal(found.target[moved[0]], statistics[moved[0]])  # the target network follows
    seen = drawn.rows["planes"], drawn.rows["scalars"], drawn.rows["legal"]
    whole, alone = (learner.values(params, *(x[:size] for x in seen)) for size in (8, 1))
    np.testing.assert_allclose(whole[:1], alone, atol=1e-5)  # the rest of the batch does not matter
