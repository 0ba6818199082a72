"""Every line of play against a player: whether it can be beaten at all, for games that are small enough."""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.games.players import Player

_CHUNK = 256  # positions given to the player at once: one size, one compilation
_KEY = 0


class LinesOfPlay(NamedTuple):
    """All games that an opponent can bring about."""

    wins: int
    draws: int
    lost: list[tuple[int, ...]]  # the moves of each game that the player lost


def never_loses(game: Game, player: Player) -> bool:
    """Whether no opponent can beat the player from either seat."""
    return not any(every_line(game, player, seat).lost for seat in (0, 1))


def every_line(game: Game, player: Player, seat: int, most: int = 200_000) -> LinesOfPlay:
    """All games in which the player, who has seat 0 or 1, answers every move that an opponent could make.

    The player must be deterministic: a search without noise, or a policy at temperature 0. TengenError if there are
    more than `most` lines at once.
    """
    states = jax.device_get(jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(_KEY), 1)))

    def answer(chunk: Any) -> Any:
        return player.ask(jax.random.key(_KEY), chunk, np.ones(_CHUNK, bool))

    moves: list[tuple[int, ...]] = [()]
    wins, draws, lost = 0, 0, []
    while moves:
        legal, to_play = _in_chunks(partial(_look, game), states)
        mine = to_play == seat
        legal[mine] = np.eye(game.num_actions, dtype=bool)[_in_chunks(answer, _take(states, mine))]
        line, action = np.nonzero(legal)
        if len(line) > most:
            raise TengenError(f"{game.name}: more than {most} lines of play; this game is too large to try all of them")
        moved = (_take(states, line), action.astype(np.int32))
        states, over, returns = _in_chunks(lambda both: _play(game, *both), moved)
        result = returns[:, seat]
        moves = [(*moves[i], int(a)) for i, a in zip(line, action, strict=True)]
        wins += int((over & (result > 0)).sum())
        draws += int((over & (result == 0)).sum())
        lost += [moves[i] for i in np.flatnonzero(over & (result < 0))]
        states, moves = _take(states, ~over), [moves[i] for i in np.flatnonzero(~over)]
    return LinesOfPlay(wins, draws, lost)


@partial(jax.jit, static_argnames="game")
def _look(game: Game, states: Any) -> tuple[Array, Array]:
    """Bool[N, A]: the legal moves; Int[N]: who moves."""
    return jax.vmap(game.legal_actions)(states), jax.vmap(game.to_play)(states)


@partial(jax.jit, static_argnames="game")
def _play(game: Game, states: Any, actions: Array) -> tuple[Any, Array, Array]:
    states = jax.vmap(game.step)(states, actions)
    return states, jax.vmap(game.is_over)(states), jax.vmap(game.returns)(states)


def _take(states: Any, places: np.ndarray) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[places], states)


def _in_chunks(function: Any, values: Any) -> Any:
    """`function` of arrays [N, ...], given 256 at a time; the last of them are repeated to fill the last chunk."""
    count = len(jax.tree.leaves(values)[0])
    places = np.arange(max(-(-count // _CHUNK), 1) * _CHUNK)
    # With nothing to compute there is still one chunk, so that the results have their shapes: its content is dropped.
    empty = jax.tree.map(lambda leaf: np.zeros((_CHUNK, *np.shape(leaf)[1:]), np.asarray(leaf).dtype), values)
    chunks = (np.minimum(places[start : start + _CHUNK], max(count - 1, 0)) for start in range(0, len(places), _CHUNK))
    parts = [jax.device_get(function(_take(values, chunk) if count else empty)) for chunk in chunks]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *parts)
