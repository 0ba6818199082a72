"""Players, matches and ratings.

    a = match.players.network("s1000", evaluate, game, settings, params)
    b = match.player_spec.parse("mcts:200").player(game)
    played = match.play(game, a, b, key, match.MatchSettings(games=100))
    print(played)                                      # s1000 - mcts:200: 81.0 % ...
    ratings = match.fit([played.result], anchor="mcts:200")

Settings, results and ratings need no JAX, which is imported with the first player or match.
"""

from tengen import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
