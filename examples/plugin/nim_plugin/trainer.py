"""The trainer: `trainer: nim_plugin.trainer:Reinforce`. Its configuration is reinforce.yaml."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from tengen import train
from tengen.config import RoleSettings, TrainerConfig
from tengen.roles import rules
from tengen.schema import REQUIRED, setting


@dataclass(frozen=True)
class ReinforceRole(RoleSettings):
    """The settings of a player besides those that all have."""

    samples: int = setting(REQUIRED, "samples per step", low=1, high=10**6, change="now")


@dataclass(frozen=True)
class ReinforceConfig(TrainerConfig):
    """The sections of every trainer, and one for each player."""

    host: ReinforceRole | None = setting(REQUIRED, "how the player who moves first learns")
    agent: ReinforceRole | None = setting(REQUIRED, "how the other player learns")


class Reinforce(train.Trainer[ReinforceConfig]):
    """Actions that were followed by a reward become more likely."""

    def __init__(self, *args, **given):
        super().__init__(*args, **given)
        for role in self.roles.values():
            role.rule_of = rules.SampledRule  # draw actions from the policy

    def _train(self, steps):
        figures = {}
        for _ in range(steps):
            for name in self.learning:
                figures = self.update(name, self._loss, self.roll_out(name, self.roles[name].settings.samples))
            self.advance()
        return figures

    def _loss(self, net, batch):
        outputs = net(batch.observations["planes"], batch.observations["scalars"])
        logits = jnp.where(batch.observations["legal"], outputs.policy, -1e9)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), batch.actions[:, None], 1)[:, 0]
        return -(batch.rewards * chosen).mean()
