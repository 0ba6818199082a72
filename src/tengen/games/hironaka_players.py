"""Hosts of Hironaka's game that follow a fixed rule. See docs/games/hironaka.md.

Each is a function from a game, a key and ONE position to an action; `Fixed` makes it a rule for a batch, as matches and
self-play call it. In a finished game the action means nothing. Agents with fixed rules, which play the first, the last
or a random coordinate of the subset, are those of any game: `games.players`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen.games.hironaka import Hironaka, HironakaState, live

Choice = Callable[[Hironaka, Array, HironakaState], Array]
"""(game, key, one position) -> Int32[]: an action."""


def all_coordinates(game: Hironaka, key: Array, state: HironakaState) -> Array:
    """The host that always names all coordinates."""
    return jnp.int32(len(game.subsets) - 1)


def zeillinger(game: Hironaka, key: Array, state: HironakaState) -> Array:
    """The host of Zeillinger's proof: where the difference of two points is smallest and where it is largest.

    Of all pairs of points it takes that whose difference has the smallest range, and of these the one whose smallest
    and largest coordinates are fewest; then the first pair in the order of the slots, and the first coordinates.
    """
    points = state.points
    alive = live(points)
    difference = points[:, None, :] - points[None, :, :]  # [M, M, D]
    low, high = difference.min(2), difference.max(2)
    extreme = (difference == low[..., None]).sum(2) + (difference == high[..., None]).sum(2)
    # A pair with the same difference everywhere would be a point and one that it dominates.
    pair = alive[:, None] & alive[None, :] & (low < high)
    ranges = jnp.where(pair, high - low, jnp.inf)
    least = pair & (ranges == ranges.min())
    chosen = jnp.argmin(jnp.where(least, extreme, difference.shape[2] * 2 + 1).reshape(-1))
    vector = difference.reshape(-1, difference.shape[2])[chosen]
    bits = (1 << jnp.argmin(vector)) | (1 << jnp.argmax(vector))
    return _number_of(game, bits)


def weak_spivakovsky(game: Hironaka, key: Array, state: HironakaState) -> Array:
    """The host that names the smallest set of at least two coordinates in which no point is zero throughout.

    Only coordinates that are above zero somewhere are used; of several such sets the first in the dictionary's order.
    """
    order = dictionary_order(game.subsets)
    sets = jnp.asarray(game.subsets[order])  # Bool[S, D]
    support = state.points > 0
    hits = (sets[:, None, :] & support[None, :, :]).any(2) | ~live(state.points)[None, :]  # [S, M]
    useful = ~(sets & ~support.any(0)).any(1)
    return jnp.asarray(order, jnp.int32)[jnp.argmax(hits.all(1) & useful)]


HOSTS: dict[str, Choice] = {"all": all_coordinates, "zeillinger": zeillinger, "spivakovsky": weak_spivakovsky}


@dataclass(frozen=True)
class Fixed:
    """A choice as the rule of a player: (params, key, states [B, ...], which Bool[B]) -> Int32[B]."""

    game: Hironaka
    choose: Choice

    def __call__(self, params: Any, key: Array, states: HironakaState, which: Array) -> Array:
        keys = jax.random.split(key, len(which))
        return jax.vmap(lambda key, state: self.choose(self.game, key, state))(keys, states)


def dictionary_order(subsets: np.ndarray) -> np.ndarray:
    """Int[S]: the numbers of the subsets Bool[S, D], smaller ones first, then as in a dictionary."""
    elements = [tuple(np.flatnonzero(subset)) for subset in subsets]
    return np.array(sorted(range(len(elements)), key=lambda number: (len(elements[number]), elements[number])))


def _number_of(game: Hironaka, bits: Array) -> Array:
    """The host's action for a subset as a bitmask."""
    dimension = game.options.dimension
    numbers = np.zeros(2**dimension, np.int32)
    numbers[game.subsets @ (1 << np.arange(dimension))] = np.arange(len(game.subsets))
    return jnp.asarray(numbers)[bits]
