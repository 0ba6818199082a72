"""The configuration of a run: a complete tree of typed sections, read from YAML.

config = load("go9", overrides=["game.komi=5.5"])
config.game.options.size
"""

from tengen import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
