"""Tengen trains game-playing networks by self-play, on one accelerator.

    game = tengen.games.make("connect_four")
    settings = tengen.config.load("connect_four")

Everything public is found below this name, and imported when it is first used.
"""

from tengen import lazy

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
