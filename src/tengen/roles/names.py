"""The parts of both roles under the names by which trainers speak of them: `trainer.host_net`, `agent_net` ..."""

import abc
from typing import Any

import optax

from tengen.roles.buffer import ReplayBuffer
from tengen.roles.role import Role
from tengen.roles.schedules import Schedule


class RoleNames(abc.ABC):
    """`x.host_net` is `x.role("host").net`, and so on."""

    @abc.abstractmethod
    def role(self, name: str) -> Role:
        """The role of that name."""

    @property
    def host_net(self) -> Any:
        return self.role("host").net

    @property
    def agent_net(self) -> Any:
        return self.role("agent").net

    @property
    def host_optimizer(self) -> optax.GradientTransformation | None:
        return self.role("host").optimizer

    @property
    def agent_optimizer(self) -> optax.GradientTransformation | None:
        return self.role("agent").optimizer

    @property
    def host_lr_scheduler(self) -> Schedule | None:
        return self.role("host").lr_scheduler

    @property
    def agent_lr_scheduler(self) -> Schedule | None:
        return self.role("agent").lr_scheduler

    @property
    def host_er_scheduler(self) -> Schedule | None:
        return self.role("host").er_scheduler

    @property
    def agent_er_scheduler(self) -> Schedule | None:
        return self.role("agent").er_scheduler

    @property
    def host_replay_buffer(self) -> ReplayBuffer | None:
        return self.role("host").replay_buffer

    @property
    def agent_replay_buffer(self) -> ReplayBuffer | None:
        return self.role("agent").replay_buffer
