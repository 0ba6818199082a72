"""What one node knows about its moves, and the choice among them. Functions of ONE game; [A] arrays."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from tengen.search.settings import Settings


class Row(NamedTuple):
    """The moves of one node, values from the side of the player who moves there."""

    logits: Array  # Float32[A]: log prior, -inf where not legal
    visits: Array  # Float32[A]
    total: Array  # Float32[A]: sum of the values of those visits
    node_visits: Array  # Float32[]: of the node itself, its own evaluation included
    node_value: Array  # Float32[]: mean over all visits of the node
    first_value: Array  # Float32[]: what its own evaluation said

    @property
    def legal(self) -> Array:
        return self.logits > -jnp.inf

    @property
    def means(self) -> Array:
        """Float32[A]: mean value of each move, 0 where not visited."""
        return self.total / jnp.maximum(self.visits, 1)


def softmax(logits: Array) -> Array:
    """Float32[A]: probabilities; -inf gives 0, and nothing but -inf gives zeros. (jax.nn's does not run in kernels.)"""
    highest = jnp.maximum(logits.max(), jnp.finfo(jnp.float32).min)
    weights = jnp.exp(logits - highest)
    return weights / jnp.maximum(weights.sum(), jnp.finfo(jnp.float32).tiny)


def puct_prior(row: Row, noise: Array, is_root: Array, settings: Settings) -> Array:
    """Float32[A]: the prior; at the root flattened and mixed with noise."""
    prior = jnp.exp(row.logits)
    flattened = prior if settings.root_temperature == 1 else softmax(row.logits / settings.root_temperature)
    noised = (1 - settings.noise_share) * flattened + settings.noise_share * noise
    return jnp.where(is_root, noised, prior)


def puct_scores(row: Row, prior: Array, is_root: Array, settings: Settings) -> Array:
    """Float32[A]: value plus exploration, as AlphaZero's; -inf where not legal.

    An unvisited move is worth what its node is, less a reduction that grows with the prior already visited (KataGo).
    """
    seen = jnp.where(row.visits > 0, prior, 0).sum()
    below, at_root = settings.fpu_reduction, settings.root_fpu_reduction
    reduction = below + (at_root - below) * is_root.astype(jnp.float32)
    unvisited = row.node_value - reduction * jnp.sqrt(seen)
    value = jnp.where(row.visits > 0, row.means, unvisited)
    scores = value + exploration(row, settings) * prior / (1 + row.visits)
    return jnp.where(row.legal, scores, -jnp.inf)


def exploration(row: Row, settings: Settings) -> Array:
    """Float32[]: what multiplies prior / (1 + visits)."""
    growth = jnp.log((row.node_visits + settings.c_base + 1) / settings.c_base)
    return (settings.c_init + growth) * jnp.sqrt(row.node_visits)


def puct_choice(row: Row, noise: Array, is_root: Array, settings: Settings) -> Array:
    """Int32: the move to follow."""
    prior = puct_prior(row, noise, is_root, settings)
    scores = puct_scores(row, prior, is_root, settings)
    if settings.forced_playouts > 0:
        due = row.visits < jnp.sqrt(settings.forced_playouts * prior * row.visits.sum())
        scores = jnp.where(is_root & due & (row.visits > 0), jnp.inf, scores)
    return jnp.argmax(scores).astype(jnp.int32)


def completed_values(row: Row) -> Array:
    """Float32[A]: mean values; a move without visits gets the mix of the node's own value and its visited moves'.

    (Danihelka et al. 2022, appendix D.) The priors weigh the visited moves against each other.
    """
    prior = jnp.exp(row.logits)
    visited = row.visits > 0
    weight = jnp.where(visited, prior, 0).sum()
    weighted = jnp.where(visited, prior * row.means, 0).sum() / jnp.maximum(weight, jnp.finfo(jnp.float32).tiny)
    count = row.visits.sum()
    mixed = (row.first_value + count * weighted) / (count + 1)
    return jnp.where(visited, row.means, mixed)


def improved_logits(row: Row, settings: Settings) -> Array:
    """Float32[A]: the prior's logits plus the completed values, rescaled to [0, 1] over the legal moves."""
    values = completed_values(row)
    low = jnp.where(row.legal, values, jnp.inf).min()
    high = jnp.where(row.legal, values, -jnp.inf).max()
    rescaled = (values - low) / jnp.maximum(high - low, 1e-8)
    weight = (settings.visit_offset + row.visits.max()) * settings.value_scale
    return jnp.where(row.legal, row.logits + weight * rescaled, -jnp.inf)


def improved_policy(row: Row, settings: Settings) -> Array:
    """Float32[A]: Gumbel's policy target; zeros if nothing is legal."""
    return softmax(improved_logits(row, settings))


def gumbel_choice(row: Row, noise: Array, base: Array, wanted: Array, is_root: Array, settings: Settings) -> Array:
    """Int32: the move to follow.

    At the root, the best of the moves that have had `wanted` visits in this search, by noise, prior and value; below,
    the move whose share of the visits falls furthest behind the improved policy.
    """
    below = improved_policy(row, settings) - row.visits / (1 + row.visits.sum())
    here = row.visits - base == wanted
    score = noise + improved_logits(row, settings)
    at_root = jnp.where(here, score, jnp.where(row.legal, -1e9, -jnp.inf))
    return jnp.argmax(jnp.where(is_root, at_root, jnp.where(row.legal, below, -jnp.inf))).astype(jnp.int32)
