"""Training data: rows, in chunks on disk and in a buffer on the device, and game records.

Settings need no JAX, which is imported when something else is used. See docs/data.md.
"""

from tengen import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
