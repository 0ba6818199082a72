"""The section `train`: optimiser, schedule, losses and checkpoints. The defaults suit a small network."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tengen.errors import OptionError
from tengen.schema import setting


@dataclass(frozen=True)
class OptimizerSettings:
    """The optimiser. Weight decay applies to kernels only, not to norms and biases."""

    kind: Literal["sgd", "adamw", "muon"] = setting(
        "adamw",
        "SGD with momentum, AdamW, or Muon (AdamW for vectors)",
        fixed="the checkpoints of this run hold the moments of its optimiser; begin a new run for another",
    )
    learning_rate: float = setting(2e-3, "learning rate where the schedule is 1", low=1e-9, high=100)
    momentum: float = setting(0.9, "decay of the gradient average per step", low=0, high=0.9999)
    square_momentum: float = setting(
        0.99, "AdamW: decay of the average of squared gradients per step", low=0, high=0.99999
    )
    weight_decay: float = setting(
        1e-2, "SGD: added to the gradient; others: decay of kernels per unit of learning rate", low=0, high=10
    )
    clip: float | None = setting(1.0, "largest gradient norm (null: no clipping)", low=1e-6, high=1e6)


@dataclass(frozen=True)
class ScheduleSettings:
    """The factor of the learning rate at each step."""

    kind: Literal["constant", "steps", "cosine", "plateau"] = setting("constant", "shape after the warm-up")
    warmup: int = setting(200, "steps of linear warm-up", low=0, high=10**9)
    boundaries: tuple[int, ...] = setting((), "steps: where it is multiplied by the factor", low=1, high=10**9)
    factor: float = setting(0.3, "steps, plateau: factor of each drop", low=0.001, high=1)
    length: int | None = setting(
        100_000, "cosine: step at which it reaches the lowest value (null: the end of the run)", low=1, high=10**9
    )
    lowest: float = setting(0.05, "cosine, plateau: lowest value", low=0, high=1)
    patience: int = setting(20, "plateau: reports without a better loss before it drops", low=1, high=10**6)
    better: float = setting(0.002, "plateau: relative decrease that counts as better", low=0, high=1)

    def check_together(self) -> Iterator[tuple[str, str]]:
        if list(self.boundaries) != sorted(set(self.boundaries)):
            yield "boundaries", f"expected rising steps, got {', '.join(map(str, self.boundaries))}"
        if self.kind == "cosine" and self.length is not None and self.length <= self.warmup:
            yield "length", f"expected more than the {self.warmup} steps of the warm-up, got {self.length}"


@dataclass(frozen=True)
class LossSettings:
    """Weights of the loss terms. The weight of a head that the network does not have is ignored."""

    policy: float = setting(1.0, "weight of the policy loss", low=0, high=1000)
    value: float = setting(1.0, "weight of the value loss (win, draw, loss)", low=0, high=1000)
    search_share: float = setting(0.0, "share of the search's value in the value target", low=0, high=1)
    opponent_policy: float = setting(0.15, "weight of the opponent's next policy", low=0, high=1000)
    ownership: float = setting(0.5, "weight of ownership, averaged over the board", low=0, high=1000)
    score_mean: float = setting(0.003, "weight of the mean score, in points", low=0, high=1000)
    score_spread: float = setting(0.002, "weight of the standard deviation of the score, in points", low=0, high=1000)
    moves_left: float = setting(0.002, "weight of the moves left", low=0, high=1000)
    extra: tuple[str, ...] = setting(
        (),
        "weights of other targets of the game (those left out: as it declares)",
        pattern=r"[a-z][a-z0-9_]*=[0-9]{1,4}(\.[0-9]{1,9})?",
        words="NAME=WEIGHT, as material=0.1",
        before=(),
    )

    def check_together(self) -> Iterator[tuple[str, str]]:
        names = [text.partition("=")[0] for text in self.extra]
        if len(set(names)) < len(names):
            yield "extra", f"expected each target once, got {', '.join(names)}"

    def weight(self, name: str) -> float | None:
        """The weight of another target of the game, if it is in `extra`."""
        return next((float(text[len(name) + 1 :]) for text in self.extra if text.startswith(f"{name}=")), None)


@dataclass(frozen=True)
class CheckpointSettings:
    interval: int = setting(2000, "steps between checkpoints", low=1, high=10**9)
    keep: int = setting(3, "newest checkpoints that are kept", low=1, high=1000)
    long_term_interval: int | None = setting(
        100_000, "steps between checkpoints that are kept for ever (null: none)", low=1, high=10**9
    )


@dataclass(frozen=True)
class TrainSettings:
    batch: int = setting(1024, "rows per step, on all devices together", low=1, high=10**6, change="start")
    lr_scale: float = setting(
        1.0, "factor of the learning rate, to change it while a run goes on", low=0, high=1000, before=1.0
    )
    samples_per_row: float = setting(
        4.0, "average number of times that a row is trained on, at most", low=0.01, high=1000
    )
    largest_debt: int = setting(
        10**9, "most samples that training may be behind; further rows allow no more samples", low=1, high=10**12
    )
    average_decay: float = setting(
        0.998, "decay of the averaged weights per step (0: no averaging)", low=0, high=0.999999
    )
    symmetries: bool = setting(True, "apply a random symmetry of the game to every row")
    optimizer: OptimizerSettings = setting(OptimizerSettings(), "the optimiser")
    schedule: ScheduleSettings = setting(ScheduleSettings(), "factor of the learning rate over time")
    loss: LossSettings = setting(LossSettings(), "weights of the loss terms")
    checkpoints: CheckpointSettings = setting(CheckpointSettings(), "checkpoints", change="start")

    def check_devices(self, count: int) -> None:
        """OptionError if a batch cannot be split over `count` devices."""
        if self.batch % count:
            raise OptionError(
                f"train.batch: expected a multiple of the {count} devices, got {self.batch}; "
                "change it, or use fewer devices (CUDA_VISIBLE_DEVICES, ring.devices.train)"
            )

    def check_together(self) -> Iterator[tuple[str, str]]:
        if self.largest_debt < self.batch:
            yield "largest_debt", f"expected at least one batch of {self.batch}, got {self.largest_debt}"
