"""Self-play: games played with search, and the training rows made from them."""

from tengen import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
