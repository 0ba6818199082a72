"""Deep Q-learning on problems whose answers are known, and going on where it was."""

import functools
import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import config as configuration
from tengen import games, train
from tengen.errors import Diverged, OptionError, TengenError
from tengen.games.players import Player, Random
from tengen.nets import saving
from tengen.nets.outputs import Outputs
from tengen.roles import rules
from tests.helpers.toy_trainers import Chain, Turns, small

_CHAIN = ("host.gamma=0.8", "host.optimizer.learning_rate=0.02", "host.net.name=mlp1x16", "host.roll_out_interval=5")


def _values(trainer: train.DQNTrainer, planes: Any, scalars: Any, legal: Any) -> np.ndarray:
    """Float[B, A]: what the trained role thinks."""
    (role,) = (role for role in trainer.roles.values() if role.settings is not None)
    return np.asarray(trainer.learner(role).values({**role.parameters, **role.others}, planes, scalars, legal))


@pytest.fixture(scope="module")
def chain() -> train.DQNTrainer:
    """Prioritised and dueling; trained."""
    config = small(*_CHAIN, "host.buffer.kind=prioritised", "host.target.tau=0.05")
    trainer = train.DQNTrainer(config, game=Chain())
    trainer.train(600)
    return trainer


@pytest.mark.slow
def test_the_chain_is_solved(chain: train.DQNTrainer) -> None:
    game = Chain()
    places = jnp.arange(1, 6)
    scalars = jax.nn.one_hot(places, 7)
    legal = jnp.ones((5, 3), bool).at[:, 2].set(False).at[2, 0].set(False)
    found = _values(chain, jnp.zeros((5, 1, 1, 0), bool), scalars, legal)
    expected = game.solved(0.8)[1:6]
    known = ~np.isnan(expected)
    np.testing.assert_allclose(found[:, :2][known], expected[known], atol=0.05)
    best = np.nanargmax(expected, 1)
    np.testing.assert_array_equal(np.argmax(np.where(legal[:, :2], found[:, :2], -9), 1), best)
    measured = chain.evaluate()
    assert set(measured) == {"walker", "walker_length", "walker_lost"}
    assert measured["walker"] == 1.0  # from everywhere the right end is worth the way


@pytest.mark.slow
def test_twenty_steps_are_ten_and_ten(tmp_path: Path) -> None:
    config = small(*_CHAIN, "host.roll_out_interval=3", "host.buffer.kind=prioritised", "host.n_step=2")
    whole = train.DQNTrainer(config, game=Chain())
    whole.train(20)
    first = train.DQNTrainer(config, game=Chain())
    first.train(10, evaluation_interval=4)
    first.save(tmp_path / "saved")
    second = train.DQNTrainer(config, game=Chain())
    assert second.load(tmp_path / "saved") == ()
    assert second.step == 10
    assert second.train(10)["steps"] == 10
    one, other = whole.checkpoint(), second.checkpoint()
    jax.tree.map(np.testing.assert_array_equal, one.state, other.state)
    assert one.about == other.about
    assert len(second.walker_replay_buffer) == len(whole.walker_replay_buffer) > 0
    assert (whole.games, whole.samples) == (second.games, second.samples)


@pytest.mark.slow
def test_schedules_of_ones_own_are_asked_at_every_step() -> None:
    trainer: Any = train.DQNTrainer(small("agent.roll_out_interval=4"), game=Chain())
    asked: list[int] = []
    trainer.walker_lr_scheduler = lambda step: asked.append(step) or 0.5**step
    figures = trainer.train(6, evaluation_interval=100)
    assert asked == [0, *range(6)], "once when it is set, then at every step"
    assert figures["learning_rate"] == pytest.approx((0.5**4 + 0.5**5) / 2)


@pytest.mark.slow
def test_damaged_checkpoints(tmp_path: Path) -> None:
    trainer = train.DQNTrainer(small(*_CHAIN), game=Chain())
    with pytest.raises(TengenError, match="there is no such folder"):
        trainer.load(tmp_path / "none")
    with pytest.raises(TengenError, match="has no checkpoint"):
        trainer.load(tmp_path)
    trainer.save(tmp_path)
    trainer.train(5)
    trainer.save(tmp_path)
    newest = tmp_path / "step_000000005"
    for file in newest.rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    again = train.DQNTrainer(small(*_CHAIN), game=Chain())
    (note,) = again.load(tmp_path)
    assert "set aside as step_000000005.corrupt" in note
    assert again.step == 0
    for file in (tmp_path / "step_000000000").rglob("*"):
        if file.is_file():
            file.write_bytes(b"garbage")
    with pytest.raises(TengenError, match="no checkpoint can be read"):
        again.load(tmp_path)
    trainer.save(tmp_path / "other")
    wider = train.DQNTrainer(small(*_CHAIN, "host.net.name=mlp1x8"), game=Chain())
    with pytest.raises(
        TengenError, match="of another network or optimiser, buffer, n_step, number of games or extra than this"
    ):
        wider.load(tmp_path / "other")


def _length(points: tuple[tuple[int, ...], ...]) -> int:
    """Rounds of Hironaka's game in two dimensions if the agent plays as well as it can."""
    return _longest(tuple(sorted(_reduced(points))))


def _reduced(points: Any) -> set[tuple[int, ...]]:
    points = set(points)
    return {p for p in points if not any(q != p and all(a <= b for a, b in zip(q, p, strict=True)) for q in points)}


@functools.cache
def _longest(points: tuple[tuple[int, int], ...]) -> int:
    if len(points) <= 1:
        return 0
    moved = ([(a + b, b) for a, b in points], [(a, a + b) for a, b in points])
    return 1 + max(_longest(tuple(sorted(_reduced(m)))) for m in moved)


_HIRONAKA2 = (
    "game.max_points=3",
    "game.max_value=6",
    "agent.games=64",
    "agent.batch=128",
    "agent.net.name=mlp2x64",
    "agent.optimizer.learning_rate=0.003",
    "agent.first_samples=1024",
    "agent.roll_out_samples=64",
    "agent.buffer.capacity=8192",
    "agent.er_schedule.length=800",
    "agent.lr_schedule.kind=cosine",
    "agent.lr_schedule.final=0.02",
    "agent.lr_schedule.length=6000",
)


def _starts(count: int) -> list[Any]:
    """Positions of three points in two dimensions, reduced, removed ones as -1."""
    rng, found = np.random.default_rng(0), []
    while len(found) < count:
        points = _reduced(map(tuple, rng.integers(0, 7, (3, 2)).tolist()))
        if len(points) > 1:
            found.append(sorted(points) + [(-1, -1)] * (3 - len(points)))
    return found


@pytest.mark.slow
def test_the_agent_of_hironakas_game_in_two_dimensions() -> None:
    """Against exhaustive search: what a position is worth, and how long games last."""
    config: Any = configuration.load_any("dqn_hironaka2", _HIRONAKA2)
    agent = train.DQNTrainer(config)
    agent.train(6000, evaluation_interval=10**6)
    game: Any = agent.game
    starts = _starts(200)
    longest = np.array([_length(tuple(p for p in points if p[0] >= 0)) for points in starts])
    states = jax.jit(jax.vmap(game.position))(jnp.array(starts, jnp.float32))
    step, look = jax.jit(jax.vmap(game.step)), jax.jit(jax.vmap(game.look))
    nothing = jnp.zeros(200, jnp.int32)
    seen = look(step(states, nothing))
    values = _values(agent, seen.observation.planes, seen.observation.scalars, seen.legal)
    found = np.where(seen.legal, values, -9).max(1)
    # After k rounds the agent loses 1, which counts 0.9^(k - 1) now; the limit of 20 rounds is never reached here.
    errors = np.abs(found + 0.9 ** (longest - 1))
    assert errors.mean() < 0.06
    assert errors.max() < 0.4
    length = np.zeros(200, int)
    for _ in range(20):
        length += ~np.asarray(look(states).over)
        states = step(states, nothing)
        states = step(states, agent.roles["agent"].rule(agent.params["agent"], None, states, None))
    assert (length <= longest).all()
    assert length.sum() >= 0.98 * longest.sum()


@pytest.mark.slow
def test_the_host_of_hironakas_game_in_two_dimensions() -> None:
    """It has no choice, so what it must learn is how long each game will last against the agent that picks 0."""
    config: Any = configuration.load_any("dqn_hironaka2", _HIRONAKA2)
    players = replace(config.players, host=None, agent="first")
    host = train.DQNTrainer(replace(config, host=config.agent, agent=None, players=players))
    host.train(4000, evaluation_interval=10**6)
    rounds = []
    for start in (starts := _starts(200)):
        points, count = {p for p in start if p[0] >= 0}, 0
        while len(points) > 1:
            points, count = _reduced((a + b, b) for a, b in points), count + 1
        rounds.append(count)
    game: Any = host.game
    seen = jax.jit(jax.vmap(lambda points: game.look(game.position(points))))(jnp.array(starts, jnp.float32))
    values = _values(host, seen.observation.planes, seen.observation.scalars, seen.legal)
    errors = np.abs(values[:, 0] - 0.9 ** (np.array(rounds) - 1))
    assert errors.mean() < 0.03
    assert errors.max() < 0.3


def _both() -> train.DQNTrainer:
    """Host and agent of Hironaka's game, untrained."""
    tiny = ("games=4", "batch=4", "net.name=mlp1x8", "buffer.capacity=64", "first_samples=8", "roll_out_samples=8")
    settings = [f"{role}.{text}" for role in ("host", "agent") for text in tiny]
    opponents = "evaluation.against=[zeillinger, first]"
    config: Any = configuration.load_any("dqn_hironaka3", [*settings, "evaluation.games=8", opponents])
    return train.DQNTrainer(config)


def test_hosts_are_opponents_of_agents_only() -> None:
    trainer = _both()
    pairings = (trainer._evaluation.pairings(role, trainer._reward) for role in ("host", "agent"))
    pairs = [label for each in pairings for label, _, _ in each]
    assert pairs == ["host_vs_agent", "host_vs_first", "agent_vs_host", "agent_vs_zeillinger", "agent_vs_first"]


@pytest.mark.slow
def test_a_new_network_leaves_the_other_target_alone(tmp_path: Path) -> None:
    trainer = _both()
    trainer.train(2, evaluation_interval=100)
    targets = trainer.extra["host"]
    trainer.replace_nets(agent_net=trainer.agent_net)
    assert trainer.extra["host"] is targets
    name = next(iter(targets))
    assert (np.asarray(targets[name]) != np.asarray(trainer.roles["host"].parameters[name])).any()
    trainer.save_net("host", tmp_path / "host")
    with pytest.raises(TengenError, match="a network that learned to play the host, not the agent"):
        rules.parse(str(tmp_path / "host"), trainer.game, "agent")


def test_a_saved_network_plays(tmp_path: Path) -> None:
    game: Any = games.make("hironaka", dimension=2, max_points=3, max_value=6)
    trainer = train.DQNTrainer(small(), game=game, agent_player=Player("random", Random(game)))
    trainer.save_net("host", tmp_path / "net", {"run": "test"})
    player = train.load_player(tmp_path / "net", game)
    assert player.name == "net"
    expected = trainer.roles["host"]
    assert player.rule == expected.rule
    jax.tree.map(np.testing.assert_array_equal, player.params, expected.params)
    saving.save(trainer.host_net, tmp_path / "both", game)
    config = replace(small(), players=replace(small().players, agent=str(tmp_path / "both")))
    against = train.DQNTrainer(config, game=game)
    assert against.roles["agent"].player is not None
    for damaged in (b"", b"garbage" * 10):
        (tmp_path / "net" / "model.safetensors").write_bytes(damaged)
        with pytest.raises(TengenError, match="not a whole safetensors file"):
            train.load_player(tmp_path / "net", game)
    with pytest.raises(TengenError, match="there is no such file"):
        train.load_player(tmp_path / "none", game)


class Dense(nnx.Module):
    """For boards, because convolutions in loops are slow on CPUs."""

    def __init__(self, inputs: int, actions: int, rngs: nnx.Rngs) -> None:
        sizes = [inputs, 64, 64]
        self.layers = nnx.List([nnx.Linear(a, b, rngs=rngs) for a, b in itertools.pairwise(sizes)])
        self.policy, self.value = nnx.Linear(64, actions, rngs=rngs), nnx.Linear(64, 3, rngs=rngs)

    def __call__(self, planes: Any, scalars: Any) -> Outputs:
        x = planes.reshape(len(planes), -1).astype(jnp.float32)
        for layer in self.layers:
            x = nnx.relu(layer(x))
        return Outputs(self.policy(x), self.value(x))


@pytest.mark.slow
@pytest.mark.parametrize("role", ["x", "o"])
def test_tic_tac_toe_against_a_random_player(role: str) -> None:
    game: Any = games.make("tic_tac_toe")
    other = "o" if role == "x" else "x"
    config = small(
        "host.games=64",
        "host.batch=64",
        "host.gamma=1.0",
        "host.optimizer.learning_rate=0.002",
        "host.buffer.capacity=16384",
        "host.first_samples=1024",
        "host.roll_out_samples=64",
        "host.roll_out_interval=2",
        "host.er_schedule.length=700",
        "host.target.tau=0.02",
        "evaluation.games=1000",
    )
    if role == "o":
        config = replace(config, host=None, agent=config.host)
    net = Dense(int(np.prod(game.planes_shape)), 9, nnx.Rngs(0))
    given: dict[str, Any] = {f"{role}_net": net, f"{other}_player": Player("random", Random(game))}
    trainer = train.DQNTrainer(config, game=game, **given)
    trainer.train(1000, evaluation_interval=10**6)
    measured = trainer.evaluate()
    assert measured[f"{role}_vs_{other}_lost"] <= 0.1
    assert measured[f"{role}_vs_{other}"] >= (0.8 if role == "x" else 0.5)


@pytest.mark.slow
def test_both_roles_learn_with_names_of_their_own() -> None:
    config = small("host.games=4", "host.roll_out_interval=2", "evaluation.against=[random]")
    config = replace(config, agent=config.host)
    told: list[tuple[str, Any]] = []
    trainer = train.DQNTrainer(config, game=Turns(), report=lambda kind, figures: told.append((kind, figures)))
    before = jax.tree.map(jnp.copy, trainer.roles["second"].parameters)
    figures = trainer.train(3, evaluation_interval=2)
    assert {"first_loss", "second_loss", "first_vs_second", "second_vs_random", "first_vs_random"} <= set(figures)
    assert [kind for kind, _ in told] == ["training", "evaluation", "training"]
    assert any((before[name] != leaf).any() for name, leaf in trainer.roles["second"].parameters.items())
    trainer.set_trainable("second", False)
    before = trainer.roles["second"].parameters
    assert "loss" in trainer.train(2)
    assert trainer.roles["second"].parameters is before
    trainer.set_trainable("first", False)
    with pytest.raises(TengenError, match="no role learns"):
        trainer.train(1)


@pytest.mark.slow
def test_a_network_that_cannot_duel() -> None:
    class Scores(nnx.Module):
        def __init__(self) -> None:
            self.layer = nnx.Linear(7, 3, rngs=nnx.Rngs(0))

        def __call__(self, planes: Any, scalars: Any) -> Any:
            return self.layer(scalars)

    with pytest.raises(TengenError, match="dueling needs a network with a value"):
        train.DQNTrainer(small(*_CHAIN), game=Chain(), walker_net=Scores())
    trainer = train.DQNTrainer(small(*_CHAIN, "host.dueling=false"), game=Chain(), walker_net=Scores())
    assert trainer.train(2)["steps"] == 2


def test_settings_of_another_trainer() -> None:
    with pytest.raises(OptionError, match="expected the configuration of a trainer"):
        train.DQNTrainer(configuration.load("tic_tac_toe"))  # type: ignore[arg-type]


@pytest.mark.slow
def test_resumed_in_another_process(tmp_path: Path) -> None:
    """Two processes of ten steps, and one of twenty."""
    code = (
        "import sys; from tengen import config, train\n"
        "t = train.DQNTrainer(config.load_any('dqn_hironaka2', ['agent.batch=32', 'agent.first_samples=512']))\n"
        "folder, steps = sys.argv[1], int(sys.argv[2])\n"
        "if len(sys.argv) > 3: t.load(folder)\n"
        "t.train(steps); t.save(folder)\n"
    )
    for folder, *arguments in (("a", "20"), ("b", "10"), ("b", "10", "load")):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / folder), *arguments], check=True, timeout=600)
    config: Any = configuration.load_any("dqn_hironaka2", ["agent.batch=32", "agent.first_samples=512"])
    trainers = [train.DQNTrainer(config) for _ in range(2)]
    for trainer, folder in zip(trainers, "ab", strict=True):
        trainer.load(tmp_path / folder)
        assert trainer.step == 20
    one, other = (trainer.checkpoint() for trainer in trainers)
    jax.tree.map(np.testing.assert_array_equal, one.state, other.state)
    assert one.about == other.about


def test_a_network_that_is_not_finite_is_not_saved(tmp_path: Path) -> None:
    game: Any = games.make("hironaka", dimension=2, max_points=3, max_value=6)
    trainer = train.DQNTrainer(small(), game=game, agent_player=Player("random", Random(game)))
    host = trainer.roles["host"]
    name = next(iter(host.parameters))
    host.parameters[name] = host.parameters[name] * jnp.inf
    with pytest.raises(Diverged, match=f"training diverged at step 0: {name} of the host holds numbers that are not"):
        trainer.save_net("host", tmp_path / "net")
    assert not (tmp_path / "net").exists()
    with pytest.raises(Diverged, match=f"at step 0: roles/host/parameters/{name} holds numbers"):
        trainer.save(tmp_path / "train")
    with pytest.raises(Diverged, match="training diverged at step 0: loss is not a finite number"):
        trainer._checked({"loss": jnp.nan})
