"""What a run is: one exhaustive tree of typed sections, read from YAML.

config = load("go9", overrides=["game.komi=5.5"])
config.game.options.size
"""

from tengen.config.load import load, load_any, load_as
from tengen.config.problems import ConfigError
from tengen.config.render import render, render_value
from tengen.config.sections import Config, DataSection, GameSection, GoalSection, NetSection, RatingSection, RunSection
from tengen.config.source import as_config, base_of, run_of, shipped
from tengen.config.trainers import DQNConfig, TrainerConfig

__all__ = [
    "Config",
    "ConfigError",
    "DQNConfig",
    "DataSection",
    "GameSection",
    "GoalSection",
    "NetSection",
    "RatingSection",
    "RunSection",
    "TrainerConfig",
    "as_config",
    "base_of",
    "load",
    "load_any",
    "load_as",
    "render",
    "render_value",
    "run_of",
    "shipped",
]
