"""The configuration of a run: a complete tree of typed sections, read from YAML.

    settings = config.load("go9", overrides=["game.komi=5.5"])
    settings.game.options.size

Settings need no JAX; loading a whole configuration imports it, to check the network against the game.
"""

from tengen import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
