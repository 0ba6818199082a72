"""Games played with search, and the rows that they teach.

Settings need no JAX, which is imported when anything else is asked for.
"""

from typing import TYPE_CHECKING

from tengen import late
from tengen.selfplay.settings import SelfplaySettings

if TYPE_CHECKING:
    from tengen.selfplay.finished import Finished, on_host, start_of
    from tengen.selfplay.playing import Actor, Selfplay

__all__ = ["Actor", "Finished", "Selfplay", "SelfplaySettings", "on_host", "start_of"]

_LATE = {"finished": ("Finished", "on_host", "start_of"), "playing": ("Actor", "Selfplay")}

__getattr__ = late.names(__name__, _LATE)
