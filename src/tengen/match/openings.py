"""Positions from which matches start: reached by random moves, and all different if the game has enough of them."""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array, lax

from tengen.games.core import Game
from tengen.games.players import draw

_TRIES = 4  # batches of random openings before one more move is played in all of them


class MatchOpenings(NamedTuple):
    """P positions, all of the same length. No two are alike, or all that there are take turns."""

    states: Any  # [P, ...]
    actions: Any  # Int32[P, K]: the moves that led there
    seeds: Any  # UInt32[P, ...]: `game.init` began with the keys of these data

    def note(self, game: Game) -> str:
        """One line for users if openings repeat, otherwise empty."""
        count, different = len(self.seeds), len(np.unique(np.asarray(self.seeds), axis=0))  # each is drawn from its own
        if different == count:
            return ""
        words = (
            "1 opening, which is repeated" if different == 1 else f"{different} different openings, which take turns"
        )
        return f"{game.name} has only {words} in these {count} pairs of games"


def openings(game: Game, key: Array, count: int, moves: int) -> MatchOpenings:
    """`count` positions after `moves` random moves, no two of which look alike to a player.

    Where there are too few, openings get longer. If no length has enough, those of the length with most of them are
    repeated in turn; if all games end within `moves` moves, openings are shorter.
    """
    best: MatchOpenings | None = None
    for length in range(moves, max(game.max_moves, moves + 1)):
        found = _distinct(game, jax.random.fold_in(key, length), count, length)
        if not len(found.actions):
            break
        best = found if best is None or len(found.actions) > len(best.actions) else best
        if len(best.actions) == count:
            return best
    if best is None:
        return openings(game, key, count, moves - 1)
    turns = np.arange(count) % len(best.actions)
    return jax.tree.map(lambda leaf: leaf[turns], best)


def _distinct(game: Game, key: Array, count: int, length: int) -> MatchOpenings:
    """`count` different openings of that length, or as many as were found."""
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
            break
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *kept)


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
