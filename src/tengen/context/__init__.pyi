from .batches import Batch as Batch
from .context import GameContext as GameContext
from .exchange import ContextStopped as ContextStopped
from .exchange import Stats as Stats
from .replies import ReplyError as ReplyError
from .settings import ContextSettings as ContextSettings
