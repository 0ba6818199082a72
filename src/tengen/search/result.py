"""What a search found out about its roots."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tengen.config.settings.search import SearchSettings
from tengen.search import rows
from tengen.search.rows import NodeRow
from tengen.search.tree import Tree
from tengen.search.walk import row_at


class SearchResult(NamedTuple):
    """For each of B roots."""

    visits: Array  # Int32[B, A]
    policy: Array  # Float32[B, A]: what a network should have said; zeros where nothing is legal
    value: Array  # Float32[B]: for the player to move
    action: Array  # Int32[B]: the move to play; -1 where nothing is legal or the root was never evaluated


def summarise(tree: Tree, key: Array, temperature: Array | float = 0.0) -> SearchResult:
    """Visits, policy target, value and a move. `temperature` ([B] or one number) is that of the choice.

    At 0 the most visited move (Gumbel decides ties by noise, prior and value; without any visits, PUCT takes the
    prior's best). Above 0 a move is drawn with policy ** (1 / temperature): visits that only noise and forced playouts
    caused are not played.
    """
    keys = jax.random.split(key, tree.root.shape[0])
    temperature = jnp.broadcast_to(jnp.float32(temperature), tree.root.shape)
    return jax.vmap(_summarise)(tree, keys, temperature)


def _summarise(tree: Tree, key: Array, temperature: Array) -> SearchResult:
    settings = tree.settings
    row = row_at(tree, tree.root, None)
    # A root that was never evaluated has stale moves.
    row = row._replace(logits=jnp.where(tree.visits[tree.root] > 0, row.logits, -jnp.inf))
    if settings.algorithm == "gumbel":
        policy = rows.improved_policy(row, settings)
        new = row.visits - tree.base
        best = jnp.where(new == new.max(), tree.noise + rows.improved_logits(row, settings), -jnp.inf)
    else:
        policy = puct_policy(row, tree.noise, settings)
        best = jnp.where(row.legal, jnp.where(row.visits.sum() > 0, row.visits, policy), -1)
    drawn = jax.random.categorical(key, jnp.log(policy) / jnp.maximum(temperature, 1e-6))
    action = jnp.where(temperature > 0, drawn, jnp.argmax(best))
    action = jnp.where(row.legal.any(), action, -1)
    return SearchResult(row.visits.astype(jnp.int32), policy, row.node_value[0], action.astype(jnp.int32))


def puct_policy(row: NodeRow, noise: Array, settings: SearchSettings) -> Array:
    """Float32[A]: the share of visits, less those that only noise and forced playouts caused.

    Every move but the most visited loses visits as long as its score stays below that of the most visited one.
    """
    visits = row.visits
    if settings.forced_playouts > 0:
        prior = rows.root_prior(row, noise, settings)
        scores = rows.puct_scores(row, prior, settings.root_fpu_reduction, settings)
        best = jnp.argmax(visits)
        gap = scores[best] - row.means
        enough = jnp.ceil(rows.exploration(row, settings) * prior / jnp.maximum(gap, 1e-9) - 1)
        pruned = jnp.where(gap > 0, jnp.clip(enough, 0, visits), visits)
        pruned = jnp.where(pruned <= 1, 0, pruned)  # a single visit is no opinion
        visits = jnp.where((jnp.arange(len(visits)) == best) | (visits == 0), visits, pruned)
    prior = jnp.where(row.legal, jnp.exp(row.logits), 0)
    total = visits.sum()
    return jnp.where(total > 0, visits / jnp.maximum(total, 1), prior)
