"""A long match on the device, in rounds: one set of openings, no two alike, which depends on nothing but the key.

All rounds are equally large, so that they share one compiled program, and each has a key of its own: a round that is
played again is the same round. Where the pairs cannot be shared out evenly, the last round begins a few pairs early.
"""

import math
from collections.abc import Callable, Generator
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tengen.games.core import Game
from tengen.match.device_match import NO_MOVE, Match, MatchLimits, MatchUnderway, last, stepwise
from tengen.match.openings import MatchOpenings, openings
from tengen.match.players import Player


class MatchRounds:
    """`pairs` pairs of games between A and B, at most `at_once` of them in a round."""

    def __init__(
        self, game: Game, a: Player, b: Player, key: Array, pairs: int, at_once: int, opening_moves: int
    ) -> None:
        self.game, self.a, self.b = game, a, b
        self.pairs = pairs
        self.count = math.ceil(pairs / at_once)
        self.size = math.ceil(pairs / self.count)  # pairs of one round
        self._opening, self._playing = keys(key)
        self._moves = opening_moves

    @cached_property
    def openings(self) -> MatchOpenings:
        """Of all pairs. TengenError if the game has not so many."""
        return openings(self.game, self._opening, self.pairs, self._moves)

    def first_pair(self, number: int) -> int:
        """Where the round of that number begins."""
        return min(number * self.size, self.pairs - self.size)

    def play(self, number: int, until: MatchLimits = MatchLimits()) -> Match:  # noqa: B008
        """One round, until it is over or one of the limits is reached."""
        return last(self.stepwise(number, until))

    def stepwise(
        self,
        number: int,
        until: MatchLimits = MatchLimits(),  # noqa: B008
        enough: Callable[[], bool] = lambda: False,
        apart: bool = False,
    ) -> Generator[MatchUnderway, None, Match]:
        """`play`, a step at a time; see `match.stepwise`."""
        first = self.first_pair(number)
        start = jax.tree.map(lambda leaf: leaf[first : first + self.size], self.openings)
        key = jax.random.fold_in(self._playing, number)
        return stepwise(self.game, self.a, self.b, key, start=start, until=until, enough=enough, apart=apart)


def keys(key: Array) -> tuple[Array, Array]:
    """Of a match: for its openings, and for its games."""
    opening, playing = jax.random.split(key)
    return opening, playing


def final_facts(game: Game, match: Match) -> dict[str, np.ndarray]:
    """{name: [G]}: what the game says of the ends of these games (`Game.record_facts`)."""
    actions = np.full((len(match.actions), game.max_moves), NO_MOVE, np.int32)
    actions[:, : match.actions.shape[1]] = match.actions
    return jax.device_get(_facts(game, jnp.asarray(match.seeds), jnp.asarray(actions)))


@partial(jax.jit, static_argnames="game")
def _facts(game: Game, seeds: Array, actions: Array) -> Any:
    """Play [G, M] actions again, and look at the ends."""

    def move(states: Any, actions: Array) -> tuple[Any, None]:
        moved = jax.vmap(game.step)(states, jnp.maximum(actions, 0))
        keep = lambda old, new: jnp.where((actions >= 0).reshape(-1, *[1] * (new.ndim - 1)), new, old)  # noqa: E731
        return jax.tree.map(keep, states, moved), None

    states = jax.vmap(game.init)(jax.random.wrap_key_data(seeds))
    states, _ = lax.scan(move, states, actions.T)
    return jax.vmap(game.record_facts)(states)
