"""What a trainer of roles is told. Nothing has a default: a configuration shows all that goes into a training.

A trainer of one's own derives from `RoleSettings` and adds what it needs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tengen import nets
from tengen.config.settings.train import OptimizerSettings
from tengen.schema import REQUIRED, setting

PLAYER = r"[^\x00-\x1f\x7f]{1,1000}"
AGENT_WORDS = "random, first, last, or the path of a network"
PLAYER_WORDS = "random, first, last, a host of Hironaka's game (zeillinger, all, spivakovsky), or the path of a network"


@dataclass(frozen=True)
class NumberSettings:
    """A number that changes with the step t, the first being 0. See `schedules.Schedule`."""

    kind: Literal["constant", "linear", "exponential", "inverse", "cosine", "steps"] = setting(
        REQUIRED, "how it goes from the initial number to the final one"
    )
    initial: float = setting(REQUIRED, "the number at step 0", low=-1e9, high=1e9)
    final: float = setting(REQUIRED, "where it ends, or what it comes close to; constant: not used", low=-1e9, high=1e9)
    length: int = setting(
        REQUIRED, "linear, cosine: steps until the end; inverse: until half of the way", low=1, high=10**12
    )
    rate: float = setting(
        REQUIRED, "exponential: share of the way that a step leaves; steps: that each boundary leaves", low=0, high=1
    )
    boundaries: tuple[int, ...] = setting(REQUIRED, "steps: when it changes", low=1, high=10**12)

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for what does not go together."""
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
class RoleNetSettings:
    """The network of a role."""

    name: str = setting(REQUIRED, "which network", words="a name as `tengen nets` explains them")
    dtype: nets.Dtype = setting(REQUIRED, "what it computes in; parameters are float32")

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for what makes no network."""
        try:
            nets.spec(self.name)
        except ValueError as error:
            yield "name", str(error)


@dataclass(frozen=True)
class BufferSettings:
    """Where samples are kept to be drawn again."""

    capacity: int = setting(REQUIRED, "samples that it holds; the oldest go first", low=1, high=2**30)
    kind: Literal["uniform", "prioritised"] = setting(
        REQUIRED, "draw all samples alike, or by how wrong they were when last seen"
    )
    alpha: float = setting(REQUIRED, "prioritised: power of the error; 0 draws all alike", low=0, high=2)
    least: float = setting(REQUIRED, "prioritised: added to the error, so that none is never drawn", low=1e-9, high=1e3)
    beta: NumberSettings = setting(REQUIRED, "prioritised: how much a loss makes up for being drawn more often, 0 to 1")

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for what does not go together."""
        yield from self.beta.outside("beta", 0, 1)


@dataclass(frozen=True)
class RoleSettings:
    """One role of a game, learning."""

    net: RoleNetSettings = setting(REQUIRED, "what looks at positions")
    optimizer: OptimizerSettings = setting(REQUIRED, "how gradients change the parameters")
    lr_schedule: NumberSettings = setting(REQUIRED, "by what the learning rate is multiplied")
    er_schedule: NumberSettings = setting(REQUIRED, "how often a random legal action is tried instead, 0 to 1")
    others_er: float = setting(REQUIRED, "how often the other role plays any legal action meanwhile", low=0, high=1)
    games: int = setting(REQUIRED, "games that are played at once to learn this role", low=1, high=10**6)
    gamma: float = setting(REQUIRED, "what a reward loses with each own move until it comes", low=0, high=1)
    n_step: int = setting(REQUIRED, "own moves that one sample spans", low=1, high=100)
    buffer: BufferSettings | None = setting(REQUIRED, "where samples are kept to be drawn again (null: nowhere)")

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for what does not go together."""
        yield from self.er_schedule.outside("er_schedule", 0, 1)
        yield from self.lr_schedule.outside("lr_schedule", 0, 1e9)


@dataclass(frozen=True)
class PlayersSection:
    """Who plays the roles that do not learn."""

    host: str | None = setting(
        REQUIRED, "the host, if it has no section (null: given by the program)", pattern=PLAYER, words=PLAYER_WORDS
    )
    agent: str | None = setting(
        REQUIRED, "the agent, if it has no section (null: given by the program)", pattern=PLAYER, words=AGENT_WORDS
    )


@dataclass(frozen=True)
class EvaluationSection:
    """How good the roles are, measured on the way."""

    interval: int = setting(REQUIRED, "steps between two evaluations", low=1, high=10**12)
    games: int = setting(REQUIRED, "games of each pair of players", low=1, high=10**6)
    against: tuple[str, ...] = setting(
        REQUIRED, "who plays each learning role besides the other role", pattern=PLAYER, words=PLAYER_WORDS
    )
