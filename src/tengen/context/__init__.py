"""Many games inside Tengen, and batches of their positions for Python functions of your own (docs/context.md).

settings.py   the options
context.py    `GameContext`: what people call
hall.py       where the thread that plays and the one that answers meet
group.py      games that think and move together, as the host knows them; seats.py is one of them
program.py    what the device does for a group; thinking.py how it finds moves, with a search or without
batches.py    what callbacks get; replies.py what they may answer
"""

from tengen import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
