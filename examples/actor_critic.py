"""A trainer of your own: the host of Hironaka's game learns a policy and what positions are worth.

tengen run examples/actor_critic.yaml
tengen sweep examples/actor_critic.yaml --grid host.entropy=0.001,0.01,0.1 --steps 400
python examples/actor_critic.py
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import jax
    import jax.numpy as jnp

    from tengen import config, train
    from tengen.config.settings.roles import RoleSettings
    from tengen.roles import rules
    from tengen.schema import REQUIRED, setting
except ModuleNotFoundError as missing:
    raise SystemExit(f"{missing}: this example needs Tengen; use the Python that it is installed in") from None


@dataclass(frozen=True)
class Role(RoleSettings):
    """The settings of a role besides those that all roles have."""

    samples: int = setting(REQUIRED, "samples per step", low=1, high=10**6)
    entropy: float = setting(REQUIRED, "weight of the policy's entropy in the loss", low=0, high=10)


@dataclass(frozen=True)
class Config(config.TrainerConfig):
    """The configuration: the sections of every trainer, with these roles."""

    host: Role | None = setting(REQUIRED, "how the host learns")
    agent: Role | None = setting(REQUIRED, "how the agent learns")


class ActorCritic(train.Trainer[Config]):
    """Each step draws samples with the current policy, and takes one step of policy and value on them.

    `trainer: actor_critic:ActorCritic` in a configuration names it; its settings are those of `Config`.
    """

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        for role in self.roles.values():
            role.rule_of = rules.SampledRule  # play by the policy, not always the best action

    def _train(self, steps: int) -> dict[str, Any]:
        figures: dict[str, Any] = {}
        for _ in range(steps):
            for name in self.learning:
                settings: Any = self.roles[name].settings
                batch = self.roll_out(name, settings.samples)
                figures = self.update(name, self._loss, batch, settings.gamma, settings.entropy)
            self.advance()
        return figures

    def _loss(self, net: Any, batch: train.Transition, gamma: float, entropy: float) -> Any:
        now, after = (net(seen["planes"], seen["scalars"]) for seen in (batch.observations, batch.next_observations))
        worth, then = (jnp.tanh(outputs.value[:, 0] - outputs.value[:, 2]) for outputs in (now, after))
        target = jax.lax.stop_gradient(batch.rewards + gamma * jnp.where(batch.dones, 0, then))
        logits = jax.nn.log_softmax(jnp.where(batch.observations["legal"], now.policy, -1e9))
        chosen = jnp.take_along_axis(logits, batch.actions[:, None], 1)[:, 0]
        actor = -(jax.lax.stop_gradient(target - worth) * chosen).mean()
        variety = -(jnp.exp(logits) * logits).sum(1).mean()
        critic = ((target - worth) ** 2).mean()
        return actor + critic - entropy * variety, {"critic_loss": critic, "entropy": variety}


def main(steps: int = 400, overrides: tuple[str, ...] = ()) -> dict[str, float]:
    settings = config.load_as(Config, Path(__file__).with_suffix(".yaml"), overrides)
    trainer = ActorCritic(settings, report=lambda kind, figures: print(kind, dict(figures)))
    print("before", trainer.evaluate())
    return trainer.train(steps)


if __name__ == "__main__":
    main()
