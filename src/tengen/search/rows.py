"""What nodes know about their moves, and the choice among them: arrays [..., A], of one node or several.

`tree.cu` has the same formulas for GPUs.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from tengen.config.settings.search import SearchSettings
from tengen.search.schedule import wanted_visits


class NodeRow(NamedTuple):
    """The moves of a node, values from the side of the player who moves there."""

    logits: Array  # Float32[..., A]: log prior, -inf where not legal
    visits: Array  # Float32[..., A]
    total: Array  # Float32[..., A]: sum of the values of those visits
    node_visits: Array  # Float32[..., 1]: of the node itself, its own evaluation included
    node_value: Array  # Float32[..., 1]: mean over all visits of the node
    first_value: Array  # Float32[..., 1]: what its own evaluation said

    @property
    def legal(self) -> Array:
        return self.logits > -jnp.inf

    @property
    def means(self) -> Array:
        """Float32[..., A]: mean value of each move, 0 where not visited."""
        return self.total / jnp.maximum(self.visits, 1)


def _sum(x: Array) -> Array:
    return jnp.sum(x, -1, keepdims=True)


def _largest(x: Array) -> Array:
    return jnp.max(x, -1, keepdims=True)


def softmax(logits: Array) -> Array:
    """Float32[..., A]: probabilities; -inf gives 0, and nothing but -inf gives zeros."""
    highest = jnp.maximum(_largest(logits), jnp.finfo(jnp.float32).min)
    weights = jnp.exp(logits - highest)
    return weights / jnp.maximum(_sum(weights), jnp.finfo(jnp.float32).tiny)


def choice_at_root(
    row: NodeRow, noise: Array, base: Array, budget: Array, done: Array, settings: SearchSettings
) -> Array:
    """Int32[...]: the move to follow at a root, after `done` simulations of `budget`."""
    if settings.algorithm == "puct":
        return puct_at_root(row, noise, settings)
    considered = jnp.minimum(_sum(jnp.where(row.legal, 1, 0)), settings.considered)
    wanted = wanted_visits(considered, settings.considered, budget, done)
    return gumbel_at_root(row, noise, base, wanted.astype(jnp.float32), settings)


def choice_below(row: NodeRow, settings: SearchSettings) -> Array:
    """Int32[...]: the move to follow at any other node."""
    return puct_below(row, settings) if settings.algorithm == "puct" else gumbel_below(row, settings)


def root_prior(row: NodeRow, noise: Array, settings: SearchSettings) -> Array:
    """Float32[..., A]: PUCT's prior at the root, flattened and mixed with noise."""
    flat = settings.root_temperature == 1
    prior = jnp.exp(row.logits) if flat else softmax(row.logits / settings.root_temperature)
    return (1 - settings.noise_share) * prior + settings.noise_share * noise


def puct_scores(row: NodeRow, prior: Array, reduction: float, settings: SearchSettings) -> Array:
    """Float32[..., A]: value plus exploration, as AlphaZero's; -inf where not legal.

    An unvisited move is worth what its node is, less a reduction that grows with the prior already visited (KataGo).
    """
    seen = _sum(jnp.where(row.visits > 0, prior, 0))
    unvisited = row.node_value - reduction * jnp.sqrt(seen)
    value = jnp.where(row.visits > 0, row.means, unvisited)
    scores = value + exploration(row, settings) * prior / (1 + row.visits)
    return jnp.where(row.legal, scores, -jnp.inf)


def exploration(row: NodeRow, settings: SearchSettings) -> Array:
    """Float32[..., 1]: what multiplies prior / (1 + visits)."""
    growth = jnp.log((row.node_visits + settings.c_base + 1) / settings.c_base)
    return (settings.c_init + growth) * jnp.sqrt(row.node_visits)


def puct_at_root(row: NodeRow, noise: Array, settings: SearchSettings) -> Array:
    """Int32[...]: the best score, or a move that has not had the visits that its prior earns it."""
    prior = root_prior(row, noise, settings)
    scores = puct_scores(row, prior, settings.root_fpu_reduction, settings)
    if settings.forced_playouts > 0:
        due = row.visits < jnp.sqrt(settings.forced_playouts * prior * _sum(row.visits))
        scores = jnp.where(due & (row.visits > 0), jnp.inf, scores)
    return jnp.argmax(scores, -1).astype(jnp.int32)


def puct_below(row: NodeRow, settings: SearchSettings) -> Array:
    """Int32[...]: the best score."""
    scores = puct_scores(row, jnp.exp(row.logits), settings.fpu_reduction, settings)
    return jnp.argmax(scores, -1).astype(jnp.int32)


def completed_values(row: NodeRow) -> Array:
    """Float32[..., A]: mean values; a move without visits gets the mix of the node's own value and its visited moves'.

    (Danihelka et al. 2022, appendix D.) The priors weigh the visited moves against each other.
    """
    visited = row.visits > 0
    prior = jnp.where(visited, jnp.exp(row.logits), 0)
    weighted = _sum(prior * row.means) / jnp.maximum(_sum(prior), jnp.finfo(jnp.float32).tiny)
    count = _sum(row.visits)
    mixed = (row.first_value + count * weighted) / (count + 1)
    return jnp.where(visited, row.means, mixed)


def improved_logits(row: NodeRow, settings: SearchSettings) -> Array:
    """Float32[..., A]: the prior's logits plus the completed values, rescaled to [0, 1] over the legal moves."""
    values = completed_values(row)
    low = -_largest(jnp.where(row.legal, -values, -jnp.inf))
    high = _largest(jnp.where(row.legal, values, -jnp.inf))
    rescaled = (values - low) / jnp.maximum(high - low, 1e-8)
    weight = (settings.visit_offset + _largest(row.visits)) * settings.value_scale
    return jnp.where(row.legal, row.logits + weight * rescaled, -jnp.inf)


def improved_policy(row: NodeRow, settings: SearchSettings) -> Array:
    """Float32[..., A]: Gumbel's policy target; zeros if nothing is legal."""
    return softmax(improved_logits(row, settings))


def gumbel_at_root(row: NodeRow, noise: Array, base: Array, wanted: Array, settings: SearchSettings) -> Array:
    """Int32[...]: the best of the moves that have had `wanted` visits in this search, by noise, prior and value."""
    score = jnp.where(row.visits - base == wanted, noise + improved_logits(row, settings), -1e9)
    return jnp.argmax(jnp.where(row.legal, score, -jnp.inf), -1).astype(jnp.int32)


def gumbel_below(row: NodeRow, settings: SearchSettings) -> Array:
    """Int32[...]: the move whose share of the visits falls furthest behind the improved policy."""
    behind = improved_policy(row, settings) - row.visits / (1 + _sum(row.visits))
    return jnp.argmax(jnp.where(row.legal, behind, -jnp.inf), -1).astype(jnp.int32)
