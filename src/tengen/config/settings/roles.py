"""The sections of roles (`black`, `white`), `players` and `evaluation` of a training of roles. See docs/trainers.md.

Your own trainer derives its settings from `RoleSettings`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tengen.config.settings.net import RoleNetSettings
from tengen.config.settings.train import OptimizerSettings
from tengen.schema import REQUIRED, setting

PLAYER = r"[^\x00-\x1f\x7f]{1,1000}"
AGENT_WORDS = "random, first, last, or the path of a network"
PLAYER_WORDS = "random, first, last, a host of Hironaka's game (zeillinger, all, spivakovsky), or the path of a network"


@dataclass(frozen=True)
class NumberSettings:
    """A number that changes with the step t, the first being 0. See `schedules.Schedule`."""

    kind: Literal["constant", "linear", "exponential", "inverse", "cosine", "steps"] = setting(
        REQUIRED, "how it changes from the initial to the final number"
    )
    initial: float = setting(REQUIRED, "the number at step 0", low=-1e9, high=1e9)
    final: float = setting(REQUIRED, "the number it ends at or approaches; constant: not used", low=-1e9, high=1e9)
    length: int = setting(
        REQUIRED, "linear, cosine: steps to the final number; inverse: steps to the middle", low=1, high=10**12
    )
    rate: float = setting(
        REQUIRED, "remaining share of the way, after each step (exponential) or boundary (steps)", low=0, high=1
    )
    boundaries: tuple[int, ...] = setting(REQUIRED, "steps: where it changes", low=1, high=10**12)

    def check_together(self) -> Iterator[tuple[str, str]]:
        if list(self.boundaries) != sorted(set(self.boundaries)):
            yield "boundaries", f"expected rising steps, got {', '.join(map(str, self.boundaries))}"

    def outside(self, key: str, low: float, high: float) -> Iterator[tuple[str, str]]:
        """(key, message) if the number that `key` names would ever be below `low` or above `high`."""
        # All kinds go from the initial number to the final one, and never beyond.
        for name in ("initial",) if self.kind == "constant" else ("initial", "final"):
            number = getattr(self, name)
            if not low <= number <= high:
                yield f"{key}.{name}", f"expected a number from {low:g} to {high:g}, got {number:g}"


@dataclass(frozen=True)
class BufferSettings:
    capacity: int = setting(REQUIRED, "samples; the oldest are dropped first", low=1, high=2**30)
    kind: Literal["uniform", "prioritised"] = setting(REQUIRED, "draw samples uniformly, or by their last error")
    alpha: float = setting(REQUIRED, "prioritised: exponent of the error (0: uniform)", low=0, high=2)
    least: float = setting(REQUIRED, "prioritised: added to every error", low=1e-9, high=1e3)
    beta: NumberSettings = setting(REQUIRED, "prioritised: importance-sampling correction, 0 to 1")

    def check_together(self) -> Iterator[tuple[str, str]]:
        yield from self.beta.outside("beta", 0, 1)


@dataclass(frozen=True)
class RoleSettings:
    net: RoleNetSettings = setting(REQUIRED, "the neural network")
    optimizer: OptimizerSettings = setting(REQUIRED, "the optimiser", change="now")
    lr_schedule: NumberSettings = setting(REQUIRED, "factor of the learning rate over time", change="now")
    er_schedule: NumberSettings = setting(REQUIRED, "exploration rate: share of random actions, 0 to 1", change="now")
    others_er: float = setting(REQUIRED, "share of random actions of the other role", low=0, high=1, change="now")
    games: int = setting(REQUIRED, "games played at once", low=1, high=10**6)
    gamma: float = setting(REQUIRED, "discount per own move", low=0, high=1)
    n_step: int = setting(REQUIRED, "own moves per sample", low=1, high=100)
    buffer: BufferSettings | None = setting(REQUIRED, "the replay buffer (null: none)")

    def check_together(self) -> Iterator[tuple[str, str]]:
        yield from self.er_schedule.outside("er_schedule", 0, 1)
        yield from self.lr_schedule.outside("lr_schedule", 0, 1e9)


@dataclass(frozen=True)
class PlayersSection:
    host: str | None = setting(
        REQUIRED,
        "who moves first, if it has no section (null: given by the program)",
        pattern=PLAYER,
        words=PLAYER_WORDS,
    )
    agent: str | None = setting(
        REQUIRED, "the other one, if it has no section (null: given by the program)", pattern=PLAYER, words=AGENT_WORDS
    )


@dataclass(frozen=True)
class EvaluationSection:
    interval: int = setting(REQUIRED, "training steps between two evaluations", low=1, high=10**12)
    games: int = setting(REQUIRED, "games of each pair of players", low=1, high=10**6)
    against: tuple[str, ...] = setting(
        REQUIRED, "opponents of each learning role besides the other role", pattern=PLAYER, words=PLAYER_WORDS
    )


@dataclass(frozen=True)
class TargetSettings:
    """The target network, which follows the learning network."""

    kind: Literal["polyak", "periodic"] = setting(REQUIRED, "move part of the way at each update, or copy")
    tau: float = setting(REQUIRED, "polyak: share of the way to the learning network at each update", low=1e-9, high=1)
    every: int = setting(REQUIRED, "steps between two updates", low=1, high=10**9)


@dataclass(frozen=True)
class DQNRoleSettings(RoleSettings):
    dueling: bool = setting(REQUIRED, "dueling network: value of the position plus advantage of the action")
    double: bool = setting(
        REQUIRED, "double Q-learning: the learning network chooses the next action, the target network evaluates it"
    )
    target: TargetSettings = setting(REQUIRED, "the target network")
    batch: int = setting(REQUIRED, "samples per step", low=1, high=10**6)
    huber: float = setting(REQUIRED, "Huber loss: errors above this count linearly", low=1e-6, high=1e9)
    first_samples: int = setting(REQUIRED, "samples before the first step", low=1, high=10**9)
    roll_out_samples: int = setting(REQUIRED, "samples added by each roll-out", low=1, high=10**9)
    roll_out_interval: int = setting(REQUIRED, "steps between two roll-outs", low=1, high=10**9)

    def check_together(self) -> Iterator[tuple[str, str]]:
        yield from super().check_together()
        if self.buffer is None:
            yield "buffer", "expected a section, because deep Q-learning draws its samples from a buffer"
            return
        for key in ("first_samples", "roll_out_samples"):
            if getattr(self, key) > self.buffer.capacity:
                yield key, f"expected at most buffer.capacity, {self.buffer.capacity}, got {getattr(self, key)}"
