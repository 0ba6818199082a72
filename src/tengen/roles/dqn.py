"""`DQNTrainer`: every learning role by deep Q-learning. See docs/trainers.md."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from tengen.config.settings.roles import DQNRoleSettings
from tengen.config.trainers import DQNConfig
from tengen.errors import Diverged, OptionError, TengenError
from tengen.roles.q_learning import QLearner, QNetworks
from tengen.roles.role import Role
from tengen.roles.trainer import Trainer
from tengen.train import schedules
from tengen.train.base import Metrics
from tengen.train.schedules import Schedule

_LEARN = 100  # what random keys are for; see `Trainer`


class DQNTrainer(Trainer[DQNConfig]):
    """Double DQN on the device: a role's samples go into its buffer, and its network learns from batches of them.

    What happens at a step only depends on its number, so 20 steps are the same as 10 steps and 10 more.
    """

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
