"""`DQNTrainer`: every learning role by deep Q-learning. See docs/trainers.md.

Double DQN as published (van Hasselt and others, 2016): for a sample (s, a, r, s') that spans n own moves

    y = r                                                         if the game ended
    y = r + gamma^n Q_target(s', argmax over legal a' of Q(s', a'))       otherwise

and the loss is the mean of weight * huber(Q(s, a) - y). Without `double` the target network chooses as well. Dueling
(Wang and others, 2016): Q(s, a) = V(s) + A(s, a) - mean over legal a' of A(s, a').
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from tengen.config.settings.roles import DQNRoleSettings
from tengen.config.trainers import DQNConfig
from tengen.errors import Diverged, OptionError, TengenError
from tengen.roles import replay, rules
from tengen.roles.replay import Replay, ReplaySample
from tengen.roles.role import Role
from tengen.roles.rules import Parameters
from tengen.roles.trainer import Trainer
from tengen.train import optimizers, schedules
from tengen.train.base import Metrics
from tengen.train.schedules import Schedule


class QNetworks(NamedTuple):
    """Everything that learning changes, except the buffer."""

    parameters: Parameters  # of the network that learns
    target: Parameters  # of the target network
    optimizer: Any
    others: Parameters = {}  # noqa: RUF012 - other variables of the network that learns, such as statistics of norms


def q_values(outputs: Any, legal: Array, dueling: bool) -> Array:
    """Float32[B, A]: the value of each action by the outputs of a network; meaningless for illegal actions."""
    advantages = rules.scores(outputs)
    if not dueling:
        return advantages
    value = outputs.value[:, 0] - outputs.value[:, 2]  # the logits of win and loss: any number
    mean = jnp.where(legal, advantages, 0).sum(1) / jnp.maximum(legal.sum(1), 1)
    return value[:, None] + advantages - mean[:, None]


def best(values: Array, legal: Array) -> Array:
    """Int32[B]: the legal action with the largest value, the first of equal ones."""
    return jnp.argmax(jnp.where(legal, values, -jnp.inf), 1)


def targets(online: Array, target: Array, rows: dict[str, Array], discount: float, double: bool) -> Array:
    """Float32[B]: y, given the values (Float32[B, A]) of both networks for the next positions."""
    chosen = best(online if double else target, rows["next_legal"])
    value = jnp.take_along_axis(target, chosen[:, None], 1)[:, 0]
    return rows["reward"] + jnp.where(rows["done"], 0, discount * value)


@dataclass(frozen=True)
class QLearner:
    """Learns one role. Equal learners share one compiled program."""

    graph: Any
    others: tuple[str, ...]  # names of the variables that are not learned
    settings: DQNRoleSettings
    optimizer: optax.GradientTransformation
    lr: Schedule
    beta: Schedule

    def values(self, params: Parameters, planes: Array, scalars: Array, legal: Array) -> Array:
        """Float32[B, A]: the value of each action by a network in evaluation mode."""
        return q_values(rules.playing(self.graph, params)(planes, scalars), legal, self.settings.dueling)

    def learned_values(self, params: Parameters, rows: dict[str, Array]) -> tuple[Array, Parameters]:
        """Float32[B, A]: the same in training mode, and the network's other variables afterwards."""
        net = rules.network(self.graph, params)
        values = q_values(net(rows["planes"], rows["scalars"]), rows["legal"], self.settings.dueling)
        after = rules.parameters(net)
        return values, {name: after[name] for name in self.others}

    def loss(
        self, parameters: Parameters, others: Parameters, target: Parameters, drawn: ReplaySample
    ) -> tuple[Array, Any]:
        """The loss of a batch, and (errors Float32[B], values of the actions played Float32[B], other variables)."""
        settings, rows = self.settings, drawn.rows
        params = {**parameters, **others}
        after = (rows["next_planes"], rows["next_scalars"], rows["next_legal"])
        online = self.values(params, *after) if settings.double else jnp.float32(0)
        y = targets(online, self.values(target, *after), rows, settings.gamma**settings.n_step, settings.double)
        played, others = self.learned_values(params, rows)
        played = jnp.take_along_axis(played, rows["action"][:, None], 1)[:, 0]
        errors = played - lax.stop_gradient(y)
        return (drawn.weights * optax.huber_loss(errors, delta=settings.huber)).mean(), (errors, played, others)

    def learn(
        self, nets: QNetworks, others: Parameters, drawn: ReplaySample, step: Array, rate: Array | None = None
    ) -> tuple[QNetworks, Array, dict[str, Array]]:
        """Take one step: the networks after it, the errors Float32[B], figures. `rate` replaces the schedule's."""
        gradient = jax.value_and_grad(self.loss, has_aux=True)
        (loss, (errors, played, others)), change = gradient(nets.parameters, others, nets.target, drawn)
        rate = self.lr(step) if rate is None else rate
        parameters, optimizer = optimizers.step(self.optimizer, change, nets.optimizer, nets.parameters, rate)
        target = self.follow(nets.target, {**parameters, **others}, step)
        figures = {
            "loss": loss,
            "error": jnp.abs(errors).mean(),
            "value": played.mean(),
            "gradient": optax.tree.norm(change),
            "learning_rate": rate,
        }
        return QNetworks(parameters, target, optimizer, others), errors, figures

    def follow(self, target: Parameters, params: Parameters, step: Array) -> Parameters:
        """The target network after this step, the first being 0."""
        settings = self.settings.target
        way = settings.tau if settings.kind == "polyak" else 1.0
        due = (step + 1) % settings.every == 0

        def move(old: Array, new: Array) -> Array:
            if not jnp.issubdtype(old.dtype, jnp.floating):
                return jnp.where(due, new, old)
            return jnp.where(due, new if way == 1.0 else old + way * (new - old), old)

        return {name: move(old, params[name]) for name, old in target.items()}

    @partial(jax.jit, static_argnames=("self",), donate_argnames=("buffer",))
    def many(
        self,
        nets: QNetworks,
        others: Parameters,
        buffer: Replay,
        key: Array,
        first: Array,
        count: Array,
        rates: Array | None = None,
        betas: Array | None = None,
    ) -> tuple[QNetworks, Replay, dict[str, Array]]:
        """Take `count` steps, beginning with number `first`; figures are means.

        What a step draws only depends on its number. `rates` and `betas` (Float32[N], one per step) replace those of
        the schedules.
        """

        def one(number: Array, carry: Any) -> Any:
            nets, buffer, sums = carry
            step = first + number
            beta = self.beta(step) if betas is None else betas[number]
            drawn = replay.draw(buffer, jax.random.fold_in(key, step), self.settings.batch, beta)
            rate = None if rates is None else rates[number]
            nets, errors, figures = self.learn(nets, nets.others, drawn, step, rate)
            assert self.settings.buffer is not None
            buffer = replay.renew(buffer, drawn.places, errors, self.settings.buffer.alpha, self.settings.buffer.least)
            return nets, buffer, jax.tree.map(jnp.add, sums, figures)

        nets = nets._replace(others=others)
        nothing = {name: jnp.float32(0) for name in ("loss", "error", "value", "gradient", "learning_rate")}
        nets, buffer, sums = lax.fori_loop(0, count, one, (nets, buffer, nothing))
        return nets, buffer, jax.tree.map(lambda total: total / count, sums)


_LEARN = 100  # what random keys are for; see `Trainer`


class DQNTrainer(Trainer[DQNConfig]):
    """Double DQN on the device: a role's samples go into its buffer, and its network learns from batches of them."""

    def __init__(self, config: DQNConfig, **given: Any) -> None:
        """As `Trainer`: the game, networks, players and reward may be given."""
        super().__init__(config, **given)
        for role in self.roles.values():
            if role.settings is not None and not isinstance(role.settings, DQNRoleSettings):
                raise OptionError(f"{role.name}: expected the settings of deep Q-learning (trainer: dqn)")
            self._replaced(role.name)

    def _replaced(self, role: str) -> None:
        """Let a new network be its own first target."""
        which = self.roles[role]
        if which.settings is not None:
            self._check_dueling(which)
            # A copy, because what is saved and restored must not be shared.
            self.extra[role] = jax.tree.map(jnp.copy, {**which.parameters, **which.others})

    def _check_dueling(self, role: Role) -> None:
        settings: Any = role.settings
        if settings.dueling:
            planes = jax.ShapeDtypeStruct((1, *self.game.planes_shape), jnp.bool_)
            scalars = jax.ShapeDtypeStruct((1, self.game.num_scalars), jnp.float32)
            outputs = jax.eval_shape(lambda x, y: role.net(x, y), planes, scalars)
            if getattr(getattr(outputs, "value", None), "shape", None) != (1, 3):
                raise TengenError(f"{role.name}_net: dueling needs a network with a value [B, 3] besides its policy")

    def learner(self, role: Role) -> QLearner:
        assert isinstance(role.settings, DQNRoleSettings)
        assert role.optimizer is not None
        # The user's own schedules are called on the host.
        lr, beta = (
            each if isinstance(each, Schedule) else Schedule.constant(0)
            for each in (role.lr_scheduler, role.beta_scheduler)
        )
        return QLearner(role.graph, tuple(role.others), role.settings, role.optimizer, lr, beta)

    def _train(self, steps: int) -> Metrics:
        goal = self.step + steps
        figures: dict[str, Any] = {}
        while self.step < goal:
            learning = [self.roles[name] for name in self.learning]
            if not learning:
                raise TengenError("no role learns: set_trainable(role, True) for one that has a section")
            until = goal
            for role in learning:
                interval: int = role.settings.roll_out_interval  # type: ignore[union-attr]
                until = min(until, self.step - self.step % interval + interval)
                if self.step % interval == 0:
                    self._collect(role)
            for role in learning:
                figures |= self._learn(role, until - self.step, len(learning) > 1)
            self.advance(until - self.step)
        return self._checked(figures)

    def _collect(self, role: Role) -> None:
        """Collect one roll-out, or as many as are needed before the first step."""
        settings: Any = role.settings
        assert role.replay_buffer is not None
        self.collect(role.name, settings.roll_out_samples)
        while len(role.replay_buffer) < settings.first_samples:
            self.collect(role.name, settings.roll_out_samples)

    def _learn(self, role: Role, steps: int, named: bool) -> dict[str, Any]:
        assert role.replay_buffer is not None
        if not len(role.replay_buffer):  # a role that began to learn between two roll-outs
            self._collect(role)
        nets = QNetworks(role.parameters, self.extra[role.name], role.optimizer_state)
        key = jax.random.fold_in(self._base, _LEARN + self.game.roles.index(role.name))
        buffer = role.replay_buffer
        nets, buffer.state, figures = self.learner(role).many(
            *(nets, role.others, buffer.state, key, jnp.int32(self.step), jnp.int32(steps)),
            *(self._asked(role, part, steps) for part in ("lr_scheduler", "beta_scheduler")),
        )
        role.parameters, self.extra[role.name], role.optimizer_state, role.others = nets
        assert role.er_scheduler is not None
        figures["exploration"] = schedules.number(role.er_scheduler, self.step, f"{role.name}_er_scheduler")
        return {f"{role.name}_{name}": figure for name, figure in figures.items()} if named else figures

    def _asked(self, role: Role, part: str, steps: int) -> Any:
        """Float32[N]: the numbers of a user's schedule for the next steps; None for one of Tengen's."""
        schedule: Any = getattr(role, part)
        if isinstance(schedule, Schedule):
            return None
        interval: int = role.settings.roll_out_interval  # type: ignore[union-attr]
        what, share = f"{role.name}_{part}", part != "lr_scheduler"
        found = [schedules.number(schedule, self.step + step, what, share=share) for step in range(steps)]
        return jnp.pad(jnp.stack(found), (0, interval - steps))

    def _checked(self, figures: dict[str, Any]) -> Metrics:
        found = {name: float(figure) for name, figure in jax.device_get(figures).items()}
        bad = [name for name, figure in found.items() if not math.isfinite(figure)]
        if bad:
            raise Diverged.at(self.step, f"{bad[0]} is not a finite number")
        return {**found, "games": self.games, "samples": self.samples}
