"""Opponents: fixed players that make the moves of one side in some of the games; only the other side's give rows.

Two players that learn only from each other may end up with strategies that only work against each other.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen.config.settings.selfplay import SelfplaySettings, named
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game
from tengen.games.players import Rule
from tengen.match import player_spec

NOBODY = -1


class Opponent(NamedTuple):
    name: str
    player: int  # whose moves it makes
    share: float  # of the games
    rule: Rule
    params: Any = ()


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


def seats(opponents: Sequence[Opponent], games: int) -> np.ndarray:
    """Int8[B]: the opponent in each place for a game, -1 for none; a place keeps its opponent."""
    ends = np.round(np.cumsum([0.0, *(opponent.share for opponent in opponents)]) * games).astype(int)
    found = np.full(games, NOBODY, np.int8)
    for number, (start, end) in enumerate(itertools.pairwise(ends)):
        found[start:end] = number
    return found


def answer(
    opponents: Sequence[Opponent], seats: np.ndarray, actions: Array, turn: Array, states: Any, moves: Array, key: Array
) -> tuple[Array, Array]:
    """The `actions` Int32[B] with the opponents' moves filled in, and Bool[B]: which moves are theirs.

    Player `turn` Int32[B] is to move in the positions `states` [B, ...]; `moves` Bool[B]: where a move is made.
    """
    theirs = jnp.zeros(len(seats), bool)
    for number, opponent in enumerate(opponents):
        here = jnp.asarray(seats == number) & (turn == opponent.player)
        chosen = opponent.rule(opponent.params, jax.random.fold_in(key, number), states, here & moves)
        actions = jnp.where(here, chosen.astype(actions.dtype), actions)
        theirs |= here
    return actions, theirs
