"""Players whose moves are easy to recognise, and a slow way to look at what was played."""

from copy import copy
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from tengen.games.core import Game
from tengen.match.device_match import Match
from tengen.match.players import Player
from tests.oracles.connect_four import ConnectFour
from tests.oracles.tic_tac_toe import TicTacToe

ORACLES: dict[str, Any] = {"tic_tac_toe": TicTacToe, "connect_four": ConnectFour}


@dataclass(frozen=True)
class Edge:
    """The first or the last legal move."""

    game: Game
    last: bool

    def __call__(self, params: Any, key: Any, states: Any, which: Any) -> Any:
        legal = jax.vmap(self.game.legal_actions)(states)
        first = jnp.argmax(legal, 1)
        return self.game.num_actions - 1 - jnp.argmax(legal[:, ::-1], 1) if self.last else first


def lowest(game: Game) -> Player:
    return Player("lowest", Edge(game, False))


def highest(game: Game) -> Player:
    return Player("highest", Edge(game, True))


def from_host(player: Player) -> Player:
    """The same player as a Python function that must be asked."""
    return Player(player.name, player.rule, player.params, on_host=True)


def moves_of(match: Match, number: int) -> list[int]:
    """One game, without what comes after its end."""
    row = match.actions[number]
    assert (row[match.length[number] :] == -1).all()
    return row[: match.length[number]].tolist()


def replay(match: Match, number: int) -> list[Any]:
    """All positions of one game by slow rules, which refuse what is not legal."""
    positions = [ORACLES[match.game]()]
    for action in moves_of(match, number):
        positions.append(copy(positions[-1]))
        positions[-1].play(action)
    return positions


def seats(match: Match, number: int) -> tuple[str, str]:
    """Who moved first, and who second."""
    return (match.a, match.b) if match.a_first[number] else (match.b, match.a)
