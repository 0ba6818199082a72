"""Learning: losses, optimisers, schedules, the compiled training step, trainers and checkpoints.

    trainer = train.AlphaZeroTrainer(train.AlphaZeroConfig(game, spec, train.TrainSettings()), sample)
    trainer.feed(ring, new_rows)
    figures = trainer.train(trainer.affordable)

    trainer = train.DQNTrainer(config.load_any("dqn_tic_tac_toe"))      # docs/trainers.md
    trainer.train(10_000)

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
    from tengen.train.base import BaseTrainer
    from tengen.train.checkpoints import Checkpoint, Checkpoints
    from tengen.train.dqn.trainer import DQNTrainer
    from tengen.train.learner import Learner, State
    from tengen.train.roles.buffer import ReplayBuffer
    from tengen.train.roles.games import FusedGame, Transition
    from tengen.train.roles.rules import load_player
    from tengen.train.roles.schedules import Schedule
    from tengen.train.trainer import Trainer

__all__ = [
    "AlphaZeroConfig",
    "AlphaZeroTrainer",
    "BaseTrainer",
    "Bucket",
    "Checkpoint",
    "CheckpointSettings",
    "Checkpoints",
    "DQNTrainer",
    "FusedGame",
    "Learner",
    "LossSettings",
    "OptimizerSettings",
    "ReplayBuffer",
    "Schedule",
    "ScheduleSettings",
    "State",
    "TrainSettings",
    "Trainer",
    "Transition",
    "load_player",
]

_LATE = {
    "alpha_zero": ("AlphaZeroConfig", "AlphaZeroTrainer"),
    "base": ("BaseTrainer",),
    "checkpoints": ("Checkpoint", "Checkpoints"),
    "dqn.trainer": ("DQNTrainer",),
    "learner": ("Learner", "State"),
    "roles.buffer": ("ReplayBuffer",),
    "roles.games": ("FusedGame", "Transition"),
    "roles.rules": ("load_player",),
    "roles.schedules": ("Schedule",),
    "trainer": ("Trainer",),
}

__getattr__ = late.names(__name__, _LATE)
