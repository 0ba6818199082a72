"""The opponents that a configuration names."""

from tengen.config.settings.selfplay import SelfplaySettings, named
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game
from tengen.match import player_spec
from tengen.selfplay.opponents import Opponent


def opponents(settings: SelfplaySettings, game: Game) -> tuple[Opponent, ...]:
    """The opponents in `settings.opponents`. OptionError for a name that is neither a player nor a network."""
    found = []
    for text in settings.opponents:
        role, name, share = named(text)
        if role not in game.roles:
            raise OptionError(f"selfplay.opponents: {game.name} has no {role}, only {' and '.join(game.roles)}")
        try:
            player = player_spec.parse_role(name, role, game).player(game)
        except TengenError as error:
            raise OptionError(f"selfplay.opponents: {error}") from error
        found.append(Opponent(player.name, game.roles.index(role), share, player.rule, player.params))
    return tuple(found)
