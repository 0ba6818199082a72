"""New games, prepared to take the places of finished ones."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, Int16, Int32, UInt32

from tengen.config.settings.selfplay import SelfplaySettings
from tengen.games.batching import choose
from tengen.games.core import Game, RandomKey


class PreparedGames(NamedTuple):
    """P games that have just begun."""

    states: Any  # [P, ...]
    actions: Int16[Array, "prepared most"]  # the random moves that led there
    length: Int32[Array, " prepared"]  # how many
    seed: UInt32[Array, "prepared 2"]  # data of the key that the game was begun with, before those moves

    def take(self, places: Int[Array, " taken"]) -> "PreparedGames":
        """The games at `places`, which wrap around."""
        return jax.tree.map(lambda leaf: leaf[places % len(self.length)], self)


def prepare(game: Game, settings: SelfplaySettings, count: int, key: RandomKey) -> PreparedGames:
    """`count` games after 0 to `opening_moves` random legal moves, none of them over."""
    begin, length, play = jax.random.split(key, 3)
    most = min(settings.opening_moves, game.max_moves - 1)
    keys = jax.random.split(begin, count)
    states = jax.vmap(lambda key: game.init_varied(key, settings.komi_spread))(keys)
    wanted = jax.random.randint(length, (count,), 0, most + 1)
    nothing = jnp.full((count, most), -1, jnp.int16)
    start = PreparedGames(states, nothing, jnp.zeros(count, jnp.int32), jax.random.key_data(keys))

    def move(ply: Array, now: PreparedGames) -> PreparedGames:
        legal = jax.vmap(game.legal_actions)(now.states)
        actions = jax.random.categorical(jax.random.fold_in(play, ply), jnp.where(legal, 0.0, -jnp.inf))
        states, look = game.step_and_look(now.states, actions.astype(jnp.int32))
        moves = (ply < wanted) & (ply == now.length) & ~look.over  # a game that would end stops here
        kept = jax.tree.map(partial(choose, moves), states, now.states)
        played = now.actions.at[:, ply].set(jnp.where(moves, actions, -1).astype(jnp.int16))
        return PreparedGames(kept, played, now.length + moves, now.seed)

    return lax.fori_loop(0, most, move, start) if most else start
