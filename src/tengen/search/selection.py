"""The statistics of a node's moves, and the choice among them, for one node or a batch.

`tree.cu` has the same formulas for GPUs.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from tengen.config.settings.search import SearchSettings

PerMove = Float32[Array, "*batch actions"]
PerNode = Float32[Array, "*batch 1"]
Visits = Int32[Array, "*batch actions"]
Choice = Int32[Array, "*batch"]
Counts = Int32[Array, "*#batch"]


class NodeRow(NamedTuple):
    """The moves of a node, with values from the side of the player who moves there."""

    logits: PerMove  # log of the prior, -inf if illegal
    visits: PerMove
    total: PerMove  # sum of the values of those visits
    node_visits: PerNode  # of the node itself, its own evaluation included
    node_value: PerNode  # mean over all visits of the node
    first_value: PerNode  # the value of its own evaluation

    @property
    def legal(self) -> Bool[Array, "*batch actions"]:
        return self.logits > -jnp.inf

    @property
    def means(self) -> PerMove:
        """Mean value of each move, 0 if not visited."""
        return self.total / jnp.maximum(self.visits, 1)


def _sum(x: Array) -> Array:
    return jnp.sum(x, -1, keepdims=True)


def _largest(x: Array) -> Array:
    return jnp.max(x, -1, keepdims=True)


def softmax(logits: PerMove) -> PerMove:
    """Probabilities; -inf gives 0, and a row of only -inf gives zeros."""
    highest = jnp.maximum(_largest(logits), jnp.finfo(jnp.float32).min)
    weights = jnp.exp(logits - highest)
    return weights / jnp.maximum(_sum(weights), jnp.finfo(jnp.float32).tiny)


def choice_at_root(
    row: NodeRow, noise: PerMove, base: Visits, budget: Counts, done: Counts, settings: SearchSettings
) -> Choice:
    """The move to follow at a root, after `done` simulations of `budget`."""
    if settings.algorithm == "puct":
        return puct_at_root(row, noise, settings)
    considered = jnp.minimum(_sum(jnp.where(row.legal, 1, 0)), considered_moves(budget, settings))
    wanted = wanted_visits(considered, settings.considered, budget, done)
    return gumbel_at_root(row, noise, base, wanted.astype(jnp.float32), settings)


def choice_below(row: NodeRow, settings: SearchSettings) -> Choice:
    """The move to follow at any other node."""
    return puct_below(row, settings) if settings.algorithm == "puct" else gumbel_below(row, settings)


def root_prior(row: NodeRow, noise: PerMove, settings: SearchSettings) -> PerMove:
    """PUCT's prior at the root, flattened by the root temperature and mixed with noise."""
    flat = settings.root_temperature == 1
    prior = jnp.exp(row.logits) if flat else softmax(row.logits / settings.root_temperature)
    return (1 - settings.noise_share) * prior + settings.noise_share * noise


def puct_scores(row: NodeRow, prior: PerMove, reduction: float, settings: SearchSettings) -> PerMove:
    """Value plus exploration, as in AlphaZero; -inf for illegal moves.

    An unvisited move has the value of its node, less a reduction that grows with the prior already visited (KataGo).
    """
    seen = _sum(jnp.where(row.visits > 0, prior, 0))
    unvisited = row.node_value - reduction * jnp.sqrt(seen)
    value = jnp.where(row.visits > 0, row.means, unvisited)
    scores = value + exploration(row, settings) * prior / (1 + row.visits)
    return jnp.where(row.legal, scores, -jnp.inf)


def exploration(row: NodeRow, settings: SearchSettings) -> PerNode:
    """The factor of prior / (1 + visits)."""
    growth = jnp.log((row.node_visits + settings.c_base + 1) / settings.c_base)
    return (settings.c_init + growth) * jnp.sqrt(row.node_visits)


def puct_at_root(row: NodeRow, noise: PerMove, settings: SearchSettings) -> Choice:
    """The move with the best score, or one that lacks the visits that its prior earns it (forced playouts)."""
    prior = root_prior(row, noise, settings)
    scores = puct_scores(row, prior, settings.root_fpu_reduction, settings)
    if settings.forced_playouts > 0:
        due = row.visits < jnp.sqrt(settings.forced_playouts * prior * _sum(row.visits))
        scores = jnp.where(due & (row.visits > 0), jnp.inf, scores)
    return jnp.argmax(scores, -1).astype(jnp.int32)


def puct_below(row: NodeRow, settings: SearchSettings) -> Choice:
    scores = puct_scores(row, jnp.exp(row.logits), settings.fpu_reduction, settings)
    return jnp.argmax(scores, -1).astype(jnp.int32)


def completed_values(row: NodeRow) -> PerMove:
    """Mean values; an unvisited move gets a mix of the node's own value and those of its visited moves.

    (Danihelka et al. 2022, appendix D.) The visited moves are weighted by their priors.
    """
    visited = row.visits > 0
    prior = jnp.where(visited, jnp.exp(row.logits), 0)
    weighted = _sum(prior * row.means) / jnp.maximum(_sum(prior), jnp.finfo(jnp.float32).tiny)
    count = _sum(row.visits)
    mixed = (row.first_value + count * weighted) / (count + 1)
    return jnp.where(visited, row.means, mixed)


def improved_logits(row: NodeRow, settings: SearchSettings) -> PerMove:
    """The prior's logits plus the completed values, rescaled to [0, 1] over the legal moves (see `value_range`)."""
    values = completed_values(row)
    low = -_largest(jnp.where(row.legal, -values, -jnp.inf))
    high = _largest(jnp.where(row.legal, values, -jnp.inf))
    rescaled = (values - low) / jnp.maximum(high - low, max(settings.value_range, 1e-8))
    weight = (settings.visit_offset + _largest(row.visits)) * settings.value_scale
    return jnp.where(row.legal, row.logits + weight * rescaled, -jnp.inf)


def improved_policy(row: NodeRow, settings: SearchSettings) -> PerMove:
    """Gumbel's policy target; zeros if nothing is legal."""
    return softmax(improved_logits(row, settings))


def gumbel_at_root(row: NodeRow, noise: PerMove, base: Visits, wanted: PerNode, settings: SearchSettings) -> Choice:
    """The best of the moves with `wanted` visits in this search, by noise, prior and value."""
    score = jnp.where(row.visits - base == wanted, noise + improved_logits(row, settings), -1e9)
    return jnp.argmax(jnp.where(row.legal, score, -jnp.inf), -1).astype(jnp.int32)


def gumbel_below(row: NodeRow, settings: SearchSettings) -> Choice:
    """The move whose share of the visits falls furthest behind the improved policy."""
    behind = improved_policy(row, settings) - row.visits / (1 + _sum(row.visits))
    return jnp.argmax(jnp.where(row.legal, behind, -jnp.inf), -1).astype(jnp.int32)


def considered_moves(budget: Counts, settings: SearchSettings) -> Counts:
    """How many moves a search of `budget` simulations considers at most, if so many are legal.

    With one visit for each of many moves, the best of them is the one that the network overrates most: hardly better
    than its policy. See docs/log.md.
    """
    enough = -(-budget // settings.considered_visits)
    return jnp.minimum(jnp.maximum(enough, 2), settings.considered)


def wanted_visits(considered: Counts, most: int, budget: Counts, done: Counts) -> Counts:
    """Sequential halving: the visits that the next move must have had so far in this search.

    `considered` moves (at most the fixed `most`) start; each phase gives the survivors equally many visits and then
    keeps the better half, until two are left. The phases share the budget evenly.
    """
    # The logarithm by comparison: rounded up, floating point would be wrong for powers of two on some devices.
    bits = range(max(1, math.ceil(math.log2(max(most, 2)))))
    phases = jnp.maximum(sum((considered > 2**bit).astype(jnp.int32) for bit in bits), 1)
    nothing = jnp.zeros_like(done)
    survivors, start, given, wanted = considered, nothing, nothing, nothing
    found = done < 0
    for _ in bits:
        rounds = jnp.maximum(budget // (phases * survivors), 1)
        length = rounds * survivors
        here = ~found & ((done < start + length) | (survivors <= 2))
        wanted = jnp.where(here, given + (done - start) // jnp.maximum(survivors, 1), wanted)
        found |= here
        start, given, survivors = start + length, given + rounds, jnp.maximum(survivors // 2, 2)
    wanted = jnp.where(found, wanted, given + (done - start) // 2)
    return jnp.where(considered <= 1, done, wanted).astype(jnp.int32)
