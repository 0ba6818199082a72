"""Many games inside Tengen, and batches of their positions for Python functions of your own (docs/context.md).

settings.py   the options
context.py    `GameContext`: what people call
hall.py       where the thread that plays and the one that answers meet
group.py      games that think and move together, as the host knows them; seats.py is one of them
program.py    what the device does for a group; thinking.py how it finds moves, with a search or without
batches.py    what callbacks get; replies.py what they may answer
"""

from tengen.play.context.batches import Batch
from tengen.play.context.context import GameContext
from tengen.play.context.hall import ContextStopped, Stats
from tengen.play.context.replies import ReplyError
from tengen.play.context.settings import ContextSettings

__all__ = ["Batch", "ContextSettings", "ContextStopped", "GameContext", "ReplyError", "Stats"]
