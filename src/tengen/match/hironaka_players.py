"""Hosts and agents of Hironaka's game as players: fixed ones by name, networks by path."""

from pathlib import Path
from typing import Literal, get_args

from tengen.config.settings.search import SearchSettings
from tengen.games.hironaka import Hironaka
from tengen.games.hironaka_players import AGENTS, HOSTS, Fixed
from tengen.match import players
from tengen.match.players import Player
from tengen.nets.evaluators import saved

Role = Literal["host", "agent"]
ROLES: tuple[Role, ...] = get_args(Role)
"""In the order of the players' numbers."""


def names(role: Role) -> tuple[str, ...]:
    """Of the fixed players."""
    return tuple(HOSTS if role == "host" else AGENTS)


def fixed(name: str, role: Role, game: Hironaka) -> Player:
    """The fixed player of one of the `names`."""
    return Player(name, Fixed(game, (HOSTS if role == "host" else AGENTS)[name]))


def network(path: Path, name: str, game: Hironaka, simulations: int = 0) -> Player:
    """A saved network as a player in either role: its best move, or with simulations the best of a search."""
    evaluate, params = saved(path, game, "float32")
    if simulations == 0:
        return players.policy(name, evaluate, game, params)
    settings = players.strongest(SearchSettings(), simulations)
    return players.network(f"{name}:{simulations}", evaluate, game, settings, params)
