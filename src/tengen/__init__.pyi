from . import config as config
from . import context as context
from . import data as data
from . import games as games
from . import gym as gym
from . import match as match
from . import nets as nets
from . import search as search
from . import selfplay as selfplay
from . import testing as testing
from . import train as train
from .errors import TengenError as TengenError
from .match.device_match import play as play

__version__: str
