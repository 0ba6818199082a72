"""Games played with search, and the rows that they teach.

Settings need no JAX, which is imported when anything else is asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tengen.selfplay.settings import SelfplaySettings

if TYPE_CHECKING:
    from tengen.selfplay.finished import Finished, on_host, start_of
    from tengen.selfplay.playing import Actor, Selfplay

__all__ = ["Actor", "Finished", "Selfplay", "SelfplaySettings", "on_host", "start_of"]

_LATE = {"finished": ("Finished", "on_host", "start_of"), "playing": ("Actor", "Selfplay")}


def __getattr__(name: str) -> Any:
    for module, late in _LATE.items():
        if name in late:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
