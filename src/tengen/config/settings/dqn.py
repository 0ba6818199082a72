"""What deep Q-learning is told."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tengen.config.settings.roles import RoleSettings
from tengen.schema import REQUIRED, setting


@dataclass(frozen=True)
class TargetSettings:
    """The target network, which follows the one that learns."""

    kind: Literal["polyak", "periodic"] = setting(REQUIRED, "move a part of the way each time, or copy")
    tau: float = setting(REQUIRED, "polyak: the part of the way", low=1e-9, high=1)
    every: int = setting(REQUIRED, "steps between two such updates", low=1, high=10**9)


@dataclass(frozen=True)
class DQNRoleSettings(RoleSettings):
    """One role of a game, learning by deep Q-learning."""

    dueling: bool = setting(REQUIRED, "what an action is worth is the position's worth and the action's advantage")
    double: bool = setting(REQUIRED, "the learning network chooses the next action, the target network values it")
    target: TargetSettings = setting(REQUIRED, "the network that values what comes next")
    batch: int = setting(REQUIRED, "samples in a step", low=1, high=10**6)
    huber: float = setting(REQUIRED, "errors above this count linearly, below it by their square", low=1e-6, high=1e9)
    first_samples: int = setting(REQUIRED, "samples before the first step", low=1, high=10**9)
    roll_out_samples: int = setting(REQUIRED, "samples that each roll-out adds", low=1, high=10**9)
    roll_out_interval: int = setting(REQUIRED, "steps between two roll-outs", low=1, high=10**9)

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for what does not go together."""
        yield from super().check_together()
        if self.buffer is None:
            yield "buffer", "expected a section, because deep Q-learning draws its samples from a buffer"
            return
        for key in ("first_samples", "roll_out_samples"):
            if getattr(self, key) > self.buffer.capacity:
                yield key, f"expected at most buffer.capacity, {self.buffer.capacity}, got {getattr(self, key)}"
