"""Positions from which matches start: reached by random moves, and all different."""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array, lax

from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.games.players import draw

_TRIES = 4  # batches of random openings before one more move is played in all of them


class MatchOpenings(NamedTuple):
    """P positions, all of the same length and no two alike."""

    states: Any  # [P, ...]
    actions: Any  # Int32[P, K]: the moves that led there
    seeds: Any  # UInt32[P, ...]: `game.init` began with the keys of these data


def openings(game: Game, key: Array, count: int, moves: int) -> MatchOpenings:
    """`count` positions after `moves` random moves, no two of which look alike to a player.

    Where there are too few, openings get longer. TengenError if the game has too few of any length.
    """
    for length in range(moves, game.max_moves):
        found = _distinct(game, jax.random.fold_in(key, length), count, length)
        if found is not None:
            return found
    raise TengenError(f"{game.name}: there are no {count} different openings; play fewer games")


def _distinct(game: Game, key: Array, count: int, length: int) -> MatchOpenings | None:
    """`count` different openings of that length, or None if fewer were found."""
    seen: set[bytes] = set()
    kept: list[Any] = []
    for attempt in range(_TRIES):
        # On the host: sizes vary from here on, and each would be compiled for.
        drawn, running, seen_by = jax.device_get(_draw(game, jax.random.fold_in(key, attempt), 2 * count, length))
        facts = [part.reshape(2 * count, -1) for part in seen_by]
        fresh = []
        for number in np.flatnonzero(running):
            name = b"".join(part[number].tobytes() for part in facts)
            if name not in seen:
                seen.add(name)
                fresh.append(number)
        places = np.array(fresh, np.int32)
        kept.append(jax.tree.map(lambda leaf, places=places: leaf[places], drawn))
        if len(seen) >= count:
            return jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *kept)
    return None


@partial(jax.jit, static_argnames=("game", "count", "length"))
def _draw(game: Game, key: Array, count: int, length: int) -> tuple[MatchOpenings, Array, tuple[Array, ...]]:
    """Random openings, whether their games still run, and the observations of the player to move."""
    starting, playing = jax.random.split(key)
    keys = jax.random.split(starting, count)
    states = jax.vmap(game.init)(keys)

    def move(states: Any, key: Array) -> tuple[Any, Array]:
        actions = draw(key, jax.vmap(game.legal_actions)(states))
        return jax.vmap(game.step)(states, actions), actions

    states, actions = lax.scan(move, states, jax.random.split(playing, length))
    look = jax.vmap(game.look)(states)
    facts = (*look.observation, jax.vmap(game.to_play)(states))
    return MatchOpenings(states, actions.T, jax.random.key_data(keys)), ~look.over, facts
