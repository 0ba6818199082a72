from .vector import GameEnv as GameEnv
from .vector import GameVectorEnv as GameVectorEnv
