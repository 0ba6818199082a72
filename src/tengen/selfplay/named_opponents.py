"""The opponents that a configuration names."""

from pathlib import Path

from tengen.config.settings.selfplay import SelfplaySettings, named
from tengen.errors import OptionError
from tengen.games.core import Game
from tengen.games.hironaka import Hironaka
from tengen.match import hironaka_players
from tengen.schema import quote
from tengen.selfplay.opponents import Opponent


def opponents(settings: SelfplaySettings, game: Game) -> tuple[Opponent, ...]:
    """Those of `settings.opponents`. TengenError for a name that is neither a player nor a network."""
    found = []
    for text in settings.opponents:
        role_name, name, share = named(text)
        role: hironaka_players.Role = "host" if role_name == "host" else "agent"
        if not isinstance(game, Hironaka):
            raise OptionError(f"selfplay.opponents: {game.name} has neither host nor agent")
        if name in hironaka_players.names(role):
            player = hironaka_players.fixed(name, role, game)
        elif Path(name).exists():
            path = Path(name)
            player = hironaka_players.network(path, path.resolve().name.removesuffix(".safetensors"), game)
        else:
            known = ", ".join(hironaka_players.names(role))
            raise OptionError(
                f"selfplay.opponents: {quote(name)}: no {role} has that name, "
                f"expected one of {known}, or the path of a network"
            )
        found.append(Opponent(player.name, hironaka_players.ROLES.index(role), share, player.rule, player.params))
    return tuple(found)
