"""Games that branch off finished ones, at positions where the search changed the network's policy most."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from tengen.games.batching import choose
from tengen.games.core import Game, RandomKey
from tengen.selfplay.history import History, restarted


class Branches(NamedTuple):
    """B games, and the position of each at which the next game may begin."""

    states: Any  # [B, ...]: that position
    ply: Int32[Array, " batch"]  # its ply; -1: there is none yet
    score: Float32[Array, " batch"]  # what it was drawn with
    begun: Int32[Array, " batch"]  # the ply at which the present game branched off another; -1: it did not


def none(game: Game, games: int) -> Branches:
    """Games that have just begun."""
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), games))
    nowhere = jnp.full(games, -1, jnp.int32)
    return Branches(states, nowhere, jnp.full(games, -jnp.inf), nowhere)


def consider(
    branches: Branches, states: Any, ply: Int32[Array, " batch"], weight: Float32[Array, " batch"], key: RandomKey
) -> Branches:
    """Draws one position of each game by weight, although each is seen only once.

    This is the weighted reservoir sampling of Efraimidis and Spirakis: the largest log(u) / weight wins. `states`
    [B, ...] are the positions at `ply`; those with a `weight` of 0 are never chosen.
    """
    chance = jax.random.uniform(key, weight.shape, minval=jnp.finfo(jnp.float32).tiny)
    score = jnp.where(weight > 0, jnp.log(chance) / jnp.maximum(weight, 1e-12), -jnp.inf)
    better = score > branches.score
    return branches._replace(
        states=jax.tree.map(partial(choose, better), states, branches.states),
        ply=jnp.where(better, ply, branches.ply),
        score=jnp.where(better, score, branches.score),
    )


def replaced(branches: Branches, gone: Bool[Array, " batch"], again: Bool[Array, " batch"]) -> Branches:
    """After the games `gone` have been replaced, those of `again` by games that branch off."""
    return branches._replace(
        ply=jnp.where(gone, -1, branches.ply),
        score=jnp.where(gone, -jnp.inf, branches.score),
        begun=jnp.where(gone, jnp.where(again, branches.ply, -1), branches.begun),
    )


def rewound(history: History, branches: Branches, again: Bool[Array, " batch"]) -> History:
    """Takes the games `again` back to their branching positions; what happened before counts as an opening."""
    later = jnp.arange(history.action.shape[1]) >= branches.ply[:, None]
    return restarted(history, jnp.where(later, -1, history.action), branches.ply, again)
