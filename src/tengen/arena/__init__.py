"""Who is stronger: players, matches on the device, ratings.

    a = players.network("s1000", evaluate, game, settings, params)
    b = players.parse("mcts:200", game)
    match = arena.play(game, a, b, key, arena.MatchSettings(games=100))
    print(match)                                       # s1000 - mcts:200: 81.0 % ...
    ratings = arena.fit([match.result], anchor="mcts:200")

Settings, results and ratings need no JAX, which is imported when the first player or match is asked for.
"""

from typing import TYPE_CHECKING

from tengen import late
from tengen.arena.ratings import Rating, Ratings, fit
from tengen.arena.results import Result, append, read
from tengen.arena.scores import Score
from tengen.arena.settings import MatchSettings

if TYPE_CHECKING:
    from tengen.arena import players
    from tengen.arena.exhaustive import Lines, every_line, never_loses
    from tengen.arena.match import Match, play
    from tengen.arena.players import Player

__all__ = [
    "Lines",
    "Match",
    "MatchSettings",
    "Player",
    "Rating",
    "Ratings",
    "Result",
    "Score",
    "append",
    "every_line",
    "fit",
    "never_loses",
    "play",
    "players",
    "read",
]

_LATE = {
    "exhaustive": ("Lines", "every_line", "never_loses"),
    "match": ("Match", "play"),
    "players": ("Player",),
}

__getattr__ = late.names(__name__, _LATE, modules=("players",))
