"""Learning: losses, optimisers, schedules, the compiled training step, trainers and checkpoints.

    trainer = train.AlphaZeroTrainer(train.AlphaZeroConfig(game, spec, train.TrainSettings()), sample)
    trainer.feed(ring, new_rows)
    figures = trainer.train(trainer.affordable)

Settings need neither JAX nor flax, which are imported when the first learner is asked for.
"""

from typing import TYPE_CHECKING

from tengen import late
from tengen.train.bucket import Bucket
from tengen.train.settings import (
    CheckpointSettings,
    LossSettings,
    OptimizerSettings,
    ScheduleSettings,
    TrainSettings,
)

if TYPE_CHECKING:
    from tengen.train.alpha_zero import AlphaZeroConfig, AlphaZeroTrainer
    from tengen.train.checkpoints import Checkpoint, Checkpoints
    from tengen.train.learner import Learner, State
    from tengen.train.trainer import Trainer

__all__ = [
    "AlphaZeroConfig",
    "AlphaZeroTrainer",
    "Bucket",
    "Checkpoint",
    "CheckpointSettings",
    "Checkpoints",
    "Learner",
    "LossSettings",
    "OptimizerSettings",
    "ScheduleSettings",
    "State",
    "TrainSettings",
    "Trainer",
]

_LATE = {
    "alpha_zero": ("AlphaZeroConfig", "AlphaZeroTrainer"),
    "checkpoints": ("Checkpoint", "Checkpoints"),
    "learner": ("Learner", "State"),
    "trainer": ("Trainer",),
}

__getattr__ = late.names(__name__, _LATE)
