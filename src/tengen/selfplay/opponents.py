"""Opponents: fixed players that make the moves of one side in some of the games.

Two players that learn only from each other may end up with strategies that only work against each other. Opponents
prevent that. Their moves are not learned from: these games only give rows for the other side.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

NOBODY = -1

Rule = Callable[[Any, Array, Any, Array], Array]
"""(params, key, states [B, ...], which Bool[B]) -> Int32[B]: as in `tengen.match.players`."""


class Opponent(NamedTuple):
    """A fixed player."""

    name: str
    player: int  # whose moves it makes
    share: float  # of the games
    rule: Rule
    params: Any = ()


def seats(opponents: Sequence[Opponent], games: int) -> np.ndarray:
    """Int8[B]: the opponent in each place for a game, -1 for none; a place keeps its opponent."""
    ends = np.round(np.cumsum([0.0, *(opponent.share for opponent in opponents)]) * games).astype(int)
    found = np.full(games, NOBODY, np.int8)
    for number, (start, end) in enumerate(itertools.pairwise(ends)):
        found[start:end] = number
    return found


def answer(
    opponents: Sequence[Opponent],
    seats: np.ndarray,
    actions: Array,
    player: Array,
    states: Any,
    moves: Array,
    key: Array,
) -> tuple[Array, Array]:
    """The `actions` Int32[B] with the opponents' moves filled in, and Bool[B]: which moves are theirs.

    `player` Int32[B] is to move in the positions `states` [B, ...]; `moves` Bool[B]: where a move is made.
    """
    theirs = jnp.zeros(len(seats), bool)
    for number, opponent in enumerate(opponents):
        here = jnp.asarray(seats == number) & (player == opponent.player)
        chosen = opponent.rule(opponent.params, jax.random.fold_in(key, number), states, here & moves)
        actions = jnp.where(here, chosen.astype(actions.dtype), actions)
        theirs |= here
    return actions, theirs
