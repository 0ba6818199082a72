"""Games played with search, and the rows that they teach.

Settings need no JAX, which is imported when anything else is asked for.
"""

from tengen import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
