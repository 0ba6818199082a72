"""What `Trainer` gives to those who derive from it."""

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import train
from tengen.config import render
from tengen.config.loading import load_as
from tengen.config.trainers import DQNConfig, TrainerConfig
from tengen.errors import ConfigError, Diverged, OptionError, TengenError
from tengen.games.players import First, Player, Random
from tengen.roles import rules as role_rules
from tengen.schema import to_dict
from tengen.train import optimizers
from tests.helpers import paths
from tests.helpers.toy_trainers import Chain, Turns, small

EXAMPLE = paths.EXAMPLES / "actor_critic.py"


class Fitting(train.Trainer[TrainerConfig]):
    """Learns to give every action the number 1, and counts what it was asked to do."""

    asked = 0

    def _train(self, steps: int) -> dict[str, Any]:
        self.asked += steps
        figures: dict[str, Any] = {}
        for _ in range(steps):
            for role in self.learning:
                figures = self.update(role, self._loss, self.roll_out(role, 8))
            self.advance()
        return figures

    def _loss(self, net: Any, batch: train.Transition) -> Any:
        error = net(batch.observations["planes"], batch.observations["scalars"]).policy - 1
        return (error**2).mean(), {"worst": jnp.abs(error).max()}


class Idle(train.Trainer[TrainerConfig]):
    """Says nothing of its steps."""

    def _train(self, steps: int) -> dict[str, Any]:
        return {"asked": float(steps)}


@pytest.fixture
def make() -> Callable[..., Fitting]:
    def make(*overrides: str, kind: Any = Fitting, **given: Any) -> Any:
        game = given.setdefault("game", Turns())
        if len(game.roles) == 2:
            given.setdefault("second_player", Player("first", First(game)))
        return kind(small(*overrides), **given)

    return make


def test_everything_has_a_name(make: Callable[..., Fitting]) -> None:
    trainer: Any = make(
        "host.optimizer.learning_rate=0.01", "host.lr_schedule.kind=linear", "host.lr_schedule.final=0.5"
    )
    assert float(trainer.first_lr_scheduler(0)) == pytest.approx(0.01)
    assert float(trainer.first_lr_scheduler(1)) == pytest.approx(0.005)
    assert float(trainer.first_er_scheduler(0)) == 1.0
    assert trainer.first_replay_buffer.capacity == 512
    assert trainer.first_optimizer is not None
    planes, scalars = jnp.zeros((3, 1, 1, 0), bool), jnp.zeros((3, 2))
    assert trainer.first_net(planes, scalars).policy.shape == (3, 3)
    assert trainer.second_net is None
    assert trainer.second_optimizer is None
    assert trainer.second_lr_scheduler is None
    assert trainer.second_er_scheduler is None
    assert trainer.second_replay_buffer is None
    assert trainer.fused_game.game is trainer.game
    assert trainer.learning == ["first"]


def test_numbers_of_the_optimiser_and_of_exploration_change_between_two_steps(make: Callable[..., Fitting]) -> None:
    trainer: Any = make("host.optimizer.learning_rate=0.01", "host.lr_schedule.kind=constant")
    trainer.train(1)
    before, moments = trainer.roles["first"].parameters, trainer.roles["first"].optimizer_state
    trainer.change(small("host.optimizer.learning_rate=1e-9", "host.lr_schedule.kind=constant", "host.others_er=0.5"))
    assert trainer.roles["first"].optimizer_state is moments
    trainer.train(1)
    jax.tree.map(partial(np.testing.assert_allclose, atol=1e-6), trainer.roles["first"].parameters, before)
    assert float(trainer._exploration(trainer.roles["first"])[1]) == 0.5
    trainer.first_er_scheduler = lambda step: 0.25
    trainer.change(small("host.er_schedule.initial=0.75"))
    assert float(trainer.first_er_scheduler(0)) == 0.25, "the program's own schedule stays"


def test_an_update_is_that_of_the_optimiser(make: Callable[..., Fitting]) -> None:
    trainer = make("host.lr_schedule.kind=linear", "host.lr_schedule.final=0.0", "host.lr_schedule.length=2")
    role, batch = trainer.roles["first"], trainer.roll_out("first", 8)
    graph, old = role.graph, role.parameters

    def loss(parameters: Any) -> Any:
        from tengen.roles import rules

        return trainer._loss(rules.network(graph, parameters), batch)[0]

    made = optimizers.make(role.settings.optimizer)

    @jax.jit
    def expected(old: Any) -> tuple[Any, Any]:
        value, gradient = jax.value_and_grad(loss)(old)
        return value, made.update(gradient, made.init(old), old)[0]

    value, updates = expected(old)
    trainer.advance()  # so that the learning rate is half of what it was
    figures = trainer.update("first", trainer._loss, batch)
    assert float(figures["loss"]) == pytest.approx(float(value), rel=1e-5)
    assert float(figures["learning_rate"]) == pytest.approx(0.0005)
    assert set(figures) == {"loss", "worst", "gradient", "learning_rate"}
    for name, leaf in role.parameters.items():
        np.testing.assert_allclose(leaf, old[name] + 0.0005 * updates[name], atol=1e-6)


def test_training_and_evaluations(make: Callable[..., Fitting]) -> None:
    told: list[tuple[str, int]] = []
    trainer = make(report=lambda kind, figures: told.append((kind, figures["steps"])))
    first = trainer.train(1)["loss"]
    figures = trainer.train(24, evaluation_interval=10)
    assert (figures["step"], figures["steps"]) == (25, 24)
    assert figures["loss"] < first
    assert "first_vs_second" in figures
    assert told == [("training", n) if kind else ("evaluation", n) for kind, n in _expected()]
    assert trainer.asked == 25
    assert trainer.train(0) == {"step": 25, "steps": 0}
    for steps in (-1, 1.5, True, "many"):
        with pytest.raises(OptionError, match="steps: expected a whole number of at least 0, got"):
            trainer.train(steps)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="evaluation_interval: expected"):
        trainer.train(1, evaluation_interval=0)


def _expected() -> list[tuple[bool, int]]:
    return [(True, 1), (True, 10), (False, 10), (True, 20), (False, 20), (True, 25)]


def test_steps_that_nobody_counts(make: Callable[..., Fitting]) -> None:
    assert make(kind=Idle).train(7) == {"asked": 7.0, "step": 7, "steps": 7}


class Threes(Idle):
    """Makes three steps or none."""

    def _train(self, steps: int) -> dict[str, Any]:
        self.advance(3)
        return {}


def test_steps_in_threes_are_evaluated_too(make: Callable[..., Fitting]) -> None:
    told: list[int] = []
    trainer: Any = make(kind=Threes, report=lambda kind, figures: told.append(figures["steps"]))
    trainer.evaluate = lambda: {"evaluated": 1.0}
    assert trainer.train(10, evaluation_interval=5) == {"evaluated": 1.0, "step": 12, "steps": 12}
    assert told == [3, 6, 6, 9, 12, 12]


class Quiet(Idle):
    """Returns whatever it was told to."""

    returned: Any = None

    def _train(self, steps: int) -> Any:
        return self.returned


def test_figures_that_are_none(make: Callable[..., Fitting]) -> None:
    trainer: Any = make(kind=Quiet)
    assert trainer.train(2) == {"step": 2, "steps": 2}
    trainer.returned = {"loss": jnp.arange(3)}
    with pytest.raises(OptionError, match="_train: loss: expected a number, got ndarray"):
        trainer.train(1)
    trainer.returned = 3.0
    with pytest.raises(OptionError, match="_train: expected figures by name, or None, got float"):
        trainer.train(1)
    trainer.returned, trainer.evaluate = None, lambda: "good"
    with pytest.raises(OptionError, match="evaluate: expected figures by name, or None, got str"):
        trainer.train(1, evaluation_interval=1)


@pytest.mark.slow
def test_saved_again(make: Callable[..., Fitting], tmp_path: Path) -> None:
    """`load` gives back what was saved last, or `save` says why it would not."""
    trainer: Any = make()
    trainer.save(tmp_path)
    trainer.update("first", trainer._loss, trainer.roll_out("first", 8))
    trainer.save(tmp_path)
    again: Any = make()
    again.load(tmp_path)
    jax.tree.map(np.testing.assert_array_equal, again.roles["first"].parameters, trainer.roles["first"].parameters)
    trainer.train(1)
    trainer.save(tmp_path)
    with pytest.raises(TengenError, match="has a checkpoint of step 1, later than this one of step 0"):
        again.save(tmp_path)


def test_opponents_of_evaluations_are_checked_at_once(
    make: Callable[..., Fitting], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match='evaluation.against: "randm": no second has that name'):
        make("evaluation.against=[randm]")
    with pytest.raises(OptionError, match='evaluation.against: "nets/x": no second has that name'):
        make("evaluation.against=[nets/x]")


def test_rewards_of_another_game(make: Callable[..., Fitting]) -> None:
    with pytest.raises(OptionError, match="reward: expected returns, because turns has no points"):
        Fitting(replace(small(), reward="finished"), game=Turns())


@pytest.mark.slow
def test_roll_outs(make: Callable[..., Fitting]) -> None:
    trainer = make()
    observations, actions, rewards, dones, after = trainer.roll_out("first", 13)
    assert actions.shape == rewards.shape == dones.shape == (13,)
    assert observations["scalars"].shape == after["scalars"].shape == (13, 2)
    assert trainer.samples == 13
    trainer.set_training(False)  # without exploration the games are all the same
    trainer.roles["first"].lane = None
    assert len(set(trainer.roll_out("first", 8).actions.tolist())) == 1
    trainer.collect("first", 20)
    assert len(trainer.first_replay_buffer) == 20
    with pytest.raises(TengenError, match="second has no section in the configuration"):
        trainer.roll_out("second", 8)
    with pytest.raises(OptionError, match="role: expected one of first, second, got 'guest'"):
        trainer.roll_out("guest", 8)
    with pytest.raises(OptionError, match="n: expected"):
        trainer.roll_out("first", 0)


def test_roles_without_a_section_must_be_given(make: Callable[..., Fitting]) -> None:
    with pytest.raises(TengenError, match=r"second: has no section .* \(second_net\), a player \(second_player\)"):
        Fitting(small(), game=Turns())
    with pytest.raises(TengenError, match="game: the configuration has none"):
        Fitting(small())
    with pytest.raises(OptionError, match="first has a section and learns"):
        make(first_player=Player("x", Random(Turns())))
    with pytest.raises(OptionError, match="expected a network or a player, got both"):
        make(second_net=make().first_net)
    with pytest.raises(OptionError, match="runs on the host"):
        make(second_player=Player("x", lambda *_: 0, on_host=True))
    with pytest.raises(OptionError, match="second_player: chain has no such role"):
        make(game=Chain(), second_player=Player("x", Random(Chain())))
    fixed = make(second_player=None, second_net=make().first_net)
    before = fixed.roles["second"].parameters
    fixed.train(1)
    assert fixed.roles["second"].parameters is before
    assert fixed.second_net is not None
    with pytest.raises(TengenError, match="so it cannot learn"):
        fixed.set_trainable("second", True)
    named = Fitting(replace(small(), players=replace(small().players, agent="last")), game=Turns())
    assert named.roles["second"].player.name == "last"
    with pytest.raises(OptionError, match='"randm": no second has that name'):
        Fitting(replace(small(), players=replace(small().players, agent="randm")), game=Turns())


@pytest.mark.slow
def test_networks_of_ones_own(make: Callable[..., Fitting]) -> None:
    class Mine(nnx.Module):
        """With dropout, which must be off in evaluations."""

        def __init__(self, actions: int) -> None:
            rngs = nnx.Rngs(0)
            self.layer, self.dropout = nnx.Linear(2, actions, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, planes: Any, scalars: Any) -> Any:
            return self.dropout(self.layer(scalars))

    trainer = make()
    with pytest.raises(TengenError, match="first_net: expected a number for each of 3 actions, got \\[2\\]"):
        trainer.replace_nets(first_net=Mine(2))
    with pytest.raises(OptionError, match="first_net: expected a flax nnx.Module or the path"):
        trainer.replace_nets(first_net=3)
    with pytest.raises(TengenError, match="there is no such file"):
        trainer.replace_nets(first_net="/nowhere/net")
    mine = Mine(3)
    trainer.replace_nets(first_net=mine)
    np.testing.assert_array_equal(trainer.first_net.layer.kernel[...], mine.layer.kernel[...])
    assert set(trainer.roles["first"].parameters) == {"layer.kernel", "layer.bias"}
    trainer.set_training(False)
    assert trainer.first_net.dropout.deterministic
    trainer.set_training(True)
    assert not trainer.first_net.dropout.deterministic
    trainer.roll_out("first", 8)
    with pytest.raises(TengenError, match="only networks of tengen.nets can be saved"):
        trainer.save_net("first", "/tmp/never")


@pytest.mark.slow
def test_rewards_of_ones_own(make: Callable[..., Fitting]) -> None:
    trainer = make(reward=lambda role, state, after, done: after.moves - state.moves)
    assert set(trainer.roll_out("first", 16).rewards.tolist()) <= {1.0, 3.0, 2.0}  # own move, and up to two others
    trainer = make(reward=lambda role, state, after, done: -1.0 * (role == "first"))
    assert (trainer.roll_out("first", 16).rewards < 0).all()


@pytest.mark.slow
def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("actor_critic", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["actor_critic"] = module
    spec.loader.exec_module(module)
    overrides = ("game.dimension=2", "game.max_points=2", "host.games=16", "host.samples=16", "host.net.name=mlp1x8")
    figures = module.main(3, (*overrides, "evaluation.games=8"))
    assert figures["step"] == 3
    assert {"critic_loss", "entropy", "loss"} <= set(figures)
    assert capsys.readouterr().out.startswith("before {'host_vs_agent': ")
    path = EXAMPLE.with_suffix(".yaml")
    assert render(load_as(module.Config, path)) == path.read_text()


class Halved:
    """A schedule with a state: half the rate after every ten questions."""

    def __init__(self) -> None:
        self.rate = jnp.float32(0.5)
        self.asked = 0

    def __call__(self, step: int) -> Any:
        self.asked += 1
        return self.rate / 2 ** (self.asked // 10)

    def state_dict(self) -> dict[str, Any]:
        return {"asked": self.asked, "rate": self.rate}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.asked = state["asked"]


@pytest.mark.slow
def test_schedules_of_ones_own(make: Callable[..., Fitting], tmp_path: Path) -> None:
    """Set by attribute, saved with their state; one of Tengen's is restored from the checkpoint."""
    trainer: Any = make()
    trainer.first_lr_scheduler = trainer.entropy_schedule = Halved()
    trainer.first_er_scheduler = train.Schedule.constant(0.25)
    trainer.temperature_schedule = train.Schedule.constant(2)
    figures = trainer.train(12)
    assert figures["learning_rate"] == 0.25
    assert float(trainer._exploration(trainer.roles["first"])[0]) == 0.25
    trainer.save(tmp_path)
    other: Any = make()
    other.temperature_schedule = train.Schedule.constant(3)
    with pytest.raises(TengenError, match="first_lr_scheduler: .* must set it before|entropy_schedule: .* must set it"):
        other.load(tmp_path)
    other.first_lr_scheduler, other.entropy_schedule = Halved(), Halved()
    other.load(tmp_path)
    assert other.first_lr_scheduler.asked == other.entropy_schedule.asked == 12
    assert float(other.first_er_scheduler(0)) == 0.25
    assert float(other.temperature_schedule(0)) == 3, "the program's"
    assert (
        "schedules" not in make(kind=Idle).checkpoint().about or make(kind=Idle).checkpoint().about["schedules"] == {}
    )


def test_bad_schedules(make: Callable[..., Fitting]) -> None:
    trainer: Any = make()
    with pytest.raises(OptionError, match="first_lr_scheduler: expected a function of the step, got 3"):
        trainer.first_lr_scheduler = 3
    with pytest.raises(
        OptionError, match=r"first_lr_scheduler: expected a finite number at step 0, got nan \(.*test_tra"
    ):
        trainer.first_lr_scheduler = lambda step: float("nan")
    with pytest.raises(OptionError, match="first_er_scheduler: expected numbers from 0 to 1, got 2 at step 0"):
        trainer.first_er_scheduler = lambda step: 2
    with pytest.raises(OptionError, match=r"first_er_scheduler: TypeError: .* takes 0 positional .*test_trainer\.py"):
        trainer.first_er_scheduler = lambda: 0.5
    trainer.first_er_scheduler = lambda step: float(step)
    trainer.train(2)
    with pytest.raises(OptionError, match=r"first_er_scheduler: expected a number from 0 to 1 at step 2, got 2\.0 "):
        trainer.train(1)
    with pytest.raises(
        OptionError, match=r"first_lr_scheduler: ZeroDivisionError: .* \(.*test_trainer.py, line \d+, in"
    ):
        trainer.first_lr_scheduler = lambda step: 1 / step
    with pytest.raises(TengenError, match="second has no section"):
        trainer.second_lr_scheduler = lambda step: 1.0
    unsaved = Halved()
    unsaved.rate = object()
    with pytest.raises(OptionError, match="first_lr_scheduler: state_dict: expected finite numbers"):
        trainer.first_lr_scheduler = unsaved
    trainer.schedule = Halved()
    trainer.schedule.rate = object()
    with pytest.raises(OptionError, match=r"schedule: state_dict: expected finite numbers, .* got object \(.*test_tr"):
        trainer.checkpoint()


def test_from_a_dictionary() -> None:
    data = to_dict(small("agent.batch=17"))
    trainer = train.DQNTrainer.from_dict(
        data, ["host.games=4"], game=Turns(), second_player=Player("first", First(Turns()))
    )
    assert (train.DQNTrainer.Config, Fitting.Config) == (DQNConfig, TrainerConfig)
    assert (trainer.config.host.games, trainer.config.host.batch) == (4, 17)
    with pytest.raises(ConfigError, match=r"first.batch: expected .*, got \"many\" \(in the dictionary\)"):
        train.DQNTrainer.from_dict({**data, "first": {**data["first"], "batch": "many"}})


class Infinite(Idle):
    def _train(self, steps: int) -> dict[str, Any]:
        return {"policy_loss": jnp.inf}


def test_a_loss_that_is_not_finite(make: Callable[..., Fitting]) -> None:
    with pytest.raises(Diverged, match=r"at step 3: policy_loss is inf, not a finite number \(.*test_trainer.py, line"):
        make(kind=Infinite).train(3)


def test_a_loss_of_several_numbers(make: Callable[..., Fitting]) -> None:
    def loss(net: Any) -> Any:
        return jnp.zeros(3)

    words = r"test_trainer.py, line \d+: expected one number as the loss, got the shape \[3\]"
    with pytest.raises(OptionError, match=words):
        make().update("first", loss)


class Dropping(nnx.Module):
    """Gives every action 0, or forgets to."""

    def __init__(self) -> None:
        self.bias = nnx.Param(jnp.zeros(3))
        self.dropout = nnx.Dropout(0.5, rngs=nnx.Rngs(0))

    def __call__(self, planes: Any, scalars: Any) -> Any:
        return self.dropout(jnp.zeros((len(scalars), 3)) + self.bias[...])


def test_networks_are_in_training_when_the_trainer_is(make: Callable[..., Fitting]) -> None:
    """In whichever mode they came; those that never learn are never in training."""
    given = Dropping()
    given.eval()
    trainer: Any = make(first_net=given, second_player=None, second_net=Dropping())
    assert (trainer.first_net.dropout.deterministic, trainer.second_net.dropout.deterministic) == (False, True)
    role = trainer.roles["first"]
    assert role_rules.network(role.rule.graph, role.params).dropout.deterministic  # moves are played without dropout
    trainer.set_training(False)
    trainer.replace_nets(first_net=Dropping())
    assert trainer.first_net.dropout.deterministic
    trainer.set_training(True)
    assert (trainer.first_net.dropout.deterministic, trainer.second_net.dropout.deterministic) == (False, True)


def test_names_of_earlier_versions_still_work(make: Callable[..., Fitting], tmp_path: Path) -> None:
    """Roles of all games were called host and agent, in programs and in checkpoints."""
    trainer = make()
    assert trainer.roles["host"] is trainer.roles["first"]
    assert trainer.host_replay_buffer is trainer.first_replay_buffer
    trainer.extra["first"] = jnp.arange(3)
    trainer.first_lr_scheduler = train.Schedule.constant(0.25)
    kept = trainer.checkpoint()
    assert (set(kept.state["roles"]), set(kept.state["extra"])) == ({"host"}, {"host"})
    assert set(kept.about["schedules"]) == {"host_lr_scheduler"}
    assert set(kept.about["trainable"]) == {"host", "agent"}
    trainer.save(tmp_path)
    other = make()
    other.extra["first"] = jnp.zeros(3, int)
    other.load(tmp_path)
    assert other.extra["first"].tolist() == [0, 1, 2]
    assert float(other.first_lr_scheduler(7)) == 0.25
    assert other.learning == ["first"]


def test_what_is_first_kept_while_it_learns_is_there_again(make: Callable[..., Fitting], tmp_path: Path) -> None:
    trainer = make()
    trainer.extra |= {"seen": jnp.arange(3), "best": {"loss": jnp.float32(0.5)}}  # a new trainer knows nothing of them
    trainer.train(1)
    trainer.save(tmp_path)
    other = make()
    other.load(tmp_path)
    assert other.extra["seen"].tolist() == [0, 1, 2]
    assert float(other.extra["best"]["loss"]) == 0.5


@pytest.mark.parametrize(
    ("value", "said"), [("text", "str <U4"), (open, "function object|builtin\\S+ object"), (object(), "object object")]
)
def test_what_cannot_be_kept_is_refused_at_once(make: Callable[..., Fitting], value: Any, said: str) -> None:
    trainer = make()
    trainer.extra["mine"] = value
    with pytest.raises(
        OptionError,
        match=rf"extra\['mine'\]: expected arrays of numbers, got ({said}) \(.*test_trainer\.py, line \d+\)",
    ):
        trainer.train(1)
    with pytest.raises(OptionError, match="expected arrays of numbers"):
        trainer.checkpoint()
    trainer.extra = 3  # type: ignore[assignment]
    with pytest.raises(OptionError, match="extra: expected arrays by name, got int"):
        trainer.train(1)


def test_attributes_of_roles(make: Callable[..., Fitting]) -> None:
    trainer = make()
    with pytest.raises(AttributeError, match="Fitting has no attribute third_net"):
        _ = trainer.third_net
    with pytest.raises(AttributeError, match=r"first_net cannot be set; replace_nets\(first_net=...\)"):
        trainer.first_net = None
    with pytest.raises(OptionError, match="third_net: turns has no such role, expected one of first_net, second_net"):
        trainer.replace_nets(third_net=trainer.first_net)


def test_the_player_first_is_not_the_role_first() -> None:
    config = replace(small("evaluation.against=[first, last]"), agent=small().host)
    config = replace(config, host=None, players=replace(config.players, host="random"))
    trainer = Fitting(config, game=Turns())
    labels = [label for label, _, _ in trainer._evaluation.pairings("second", trainer._reward)]
    assert labels == ["second_vs_first", "second_vs_first_action", "second_vs_last"]
