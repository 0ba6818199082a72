from tengen.config.settings.match import MatchSettings as MatchSettings

from . import player_spec as player_spec
from . import players as players
from .device_match import Match as Match
from .device_match import play as play
from .exhaustive import LinesOfPlay as LinesOfPlay
from .exhaustive import every_line as every_line
from .exhaustive import never_loses as never_loses
from .players import Player as Player
from .ratings import Rating as Rating
from .ratings import Ratings as Ratings
from .ratings import fit as fit
from .results import MatchResult as MatchResult
from .results import append as append
from .results import read as read
