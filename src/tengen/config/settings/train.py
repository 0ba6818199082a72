"""What learning is told. The defaults are good ones for a small network; a configuration spells all of them out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tengen.schema import setting


@dataclass(frozen=True)
class OptimizerSettings:
    """How gradients change the parameters. Decay is for kernels only: norms and biases are spared."""

    kind: Literal["sgd", "adamw", "muon"] = setting("adamw", "SGD with momentum, AdamW, or Muon (AdamW for vectors)")
    learning_rate: float = setting(2e-3, "the learning rate where the schedule is at 1", low=1e-9, high=100)
    momentum: float = setting(0.9, "share of the gradient's average that a step keeps", low=0, high=0.9999)
    square_momentum: float = setting(0.99, "AdamW: the same for the gradient's square", low=0, high=0.99999)
    weight_decay: float = setting(
        1e-2, "SGD: added to the gradient; others: share of a kernel lost per unit of learning rate", low=0, high=10
    )
    clip: float | None = setting(1.0, "gradients longer than this are cut to it (null: never)", low=1e-6, high=1e6)


@dataclass(frozen=True)
class ScheduleSettings:
    """By what the learning rate is multiplied, step by step."""

    kind: Literal["constant", "steps", "cosine", "plateau"] = setting("constant", "how it falls after warming up")
    warmup: int = setting(200, "steps in which it rises from 0 to 1", low=0, high=10**9)
    boundaries: tuple[int, ...] = setting((), "steps: when it is multiplied by the factor", low=1, high=10**9)
    factor: float = setting(0.3, "steps and plateau: by what it is multiplied each time", low=0.001, high=1)
    length: int | None = setting(
        100_000, "cosine: the step at which it reaches the lowest (null: where the run ends)", low=1, high=10**9
    )
    lowest: float = setting(0.05, "cosine and plateau: it never falls below this", low=0, high=1)
    patience: int = setting(20, "plateau: reports without a better loss before it falls", low=1, high=10**6)
    better: float = setting(0.002, "plateau: share by which a loss must fall to be better", low=0, high=1)

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for what does not go together."""
        if list(self.boundaries) != sorted(set(self.boundaries)):
            yield "boundaries", f"expected rising steps, got {', '.join(map(str, self.boundaries))}"
        if self.kind == "cosine" and self.length is not None and self.length <= self.warmup:
            yield "length", f"expected more than the {self.warmup} steps of warming up, got {self.length}"


@dataclass(frozen=True)
class LossSettings:
    """How much each prediction counts. A weight for a head that the network does not have changes nothing."""

    policy: float = setting(1.0, "weight of the policy", low=0, high=1000)
    value: float = setting(1.0, "weight of win, draw and loss", low=0, high=1000)
    search_share: float = setting(0.0, "share of the search's value in the target of the value", low=0, high=1)
    opponent_policy: float = setting(0.15, "weight of the opponent's reply", low=0, high=1000)
    ownership: float = setting(0.5, "weight of ownership, a mean over the board", low=0, high=1000)
    score_mean: float = setting(0.003, "weight of the score's mean, in points", low=0, high=1000)
    score_spread: float = setting(0.002, "weight of the score's standard deviation, in points", low=0, high=1000)
    moves_left: float = setting(0.002, "weight of the moves left, in moves", low=0, high=1000)


@dataclass(frozen=True)
class CheckpointSettings:
    """What is kept of a training, to go on from."""

    interval: int = setting(2000, "steps between checkpoints", low=1, high=10**9)
    keep: int = setting(3, "how many of the newest are kept", low=1, high=1000)
    long_term_interval: int | None = setting(
        100_000, "steps between those that are kept for ever (null: none are)", low=1, high=10**9
    )


@dataclass(frozen=True)
class TrainSettings:
    """One training."""

    batch: int = setting(1024, "rows in a step, on all devices together", low=1, high=10**6)
    samples_per_row: float = setting(
        4.0, "how often a row is learned from, on average; never more", low=0.01, high=1000
    )
    largest_debt: int = setting(
        10**9, "samples that may wait to be learned; beyond that, rows earn nothing more", low=1, high=10**12
    )
    average_decay: float = setting(
        0.998, "share of the averaged weights that a step keeps (0: no averaging)", low=0, high=0.999999
    )
    symmetries: bool = setting(True, "show every row through a random symmetry of the game")
    optimizer: OptimizerSettings = setting(OptimizerSettings(), "how gradients change the parameters")
    schedule: ScheduleSettings = setting(ScheduleSettings(), "by what the learning rate is multiplied")
    loss: LossSettings = setting(LossSettings(), "how much each prediction counts")
    checkpoints: CheckpointSettings = setting(CheckpointSettings(), "what is kept to go on from")

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for what does not go together."""
        if self.largest_debt < self.batch:
            yield "largest_debt", f"expected at least one batch of {self.batch}, got {self.largest_debt}"
