"""Many games inside Tengen, and batches of their positions for your own Python functions (docs/context.md)."""

from tengen import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
