"""What a run is: one exhaustive tree of typed sections, read from YAML.

config = load("go9", overrides=["game.komi=5.5"])
config.game.options.size
"""

from tengen.config.load import load
from tengen.config.problems import ConfigError
from tengen.config.render import render, render_value
from tengen.config.sections import Config, DataSection, GameSection, GoalSection, NetSection, RatingSection, RunSection
from tengen.config.source import shipped

__all__ = [
    "Config",
    "ConfigError",
    "DataSection",
    "GameSection",
    "GoalSection",
    "NetSection",
    "RatingSection",
    "RunSection",
    "load",
    "render",
    "render_value",
    "shipped",
]
