"""What people do with a network: find it, play against it, look inside, or bring their own.

`GameContext` hands out batches of positions to Python functions (docs/context.md). JAX is imported when a name is
asked for.
"""

from typing import TYPE_CHECKING

from tengen import late

if TYPE_CHECKING:
    from tengen.play.context import ContextStopped, GameContext, ReplyError, Stats

__all__ = ["ContextStopped", "GameContext", "ReplyError", "Stats"]

_LATE = {"context": ("ContextStopped", "GameContext", "ReplyError", "Stats")}

__getattr__ = late.names(__name__, _LATE)
