"""Learning: losses, optimisers, schedules, the compiled training step, trainers and checkpoints.

    trainer = train.AlphaZeroTrainer(train.AlphaZeroConfig(game, spec, train.TrainSettings()), sample)
    trainer.feed((buffer, window), new_rows)
    figures = trainer.train(trainer.affordable)

    trainer = train.DQNTrainer(config.load_any("dqn_tic_tac_toe"))      # docs/trainers.md
    trainer.train(10_000)

Settings need neither JAX nor flax, which are imported when a learner is first used.
"""

from tengen import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
