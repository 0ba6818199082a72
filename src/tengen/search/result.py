"""The result of a search at its roots."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int32

from tengen.config.settings.search import SearchSettings
from tengen.games.core import RandomKey
from tengen.search import selection
from tengen.search.selection import NodeRow, PerMove
from tengen.search.tree import Tree, parts
from tengen.search.walk import row_at

_TINY = jnp.finfo(jnp.float32).tiny
_ENOUGH = 0.1  # share of the most visited move's visits that PUCT's move to play has at least


class SearchResult(NamedTuple):
    """The results of the searches, one per root of a batch."""

    visits: Int32[Array, "*batch actions"]
    policy: Float32[Array, "*batch actions"]  # the policy target for training; zeros if nothing is legal
    value: Float32[Array, "*batch"]  # for the player to move, without points; see `_worth`
    action: Int32[Array, "*batch"]  # the move to play; -1 if nothing is legal or the root was never evaluated
    surprise: Float32[Array, "*batch"]  # KL divergence of `policy` from the network's, in nats
    score: Float32[Array, "*batch"] | None = None  # in points, for the player to move; only with `score_weight`


def summarise(tree: Tree, key: RandomKey, temperature: Float[Array, "*#batch"] | float = 0.0) -> SearchResult:
    """Visits, policy target, value and a move, chosen by `temperature` (one number, or one per game).

    At 0 this is PUCT's move with the best lower bound of its value (see `lower_bounds`), or Gumbel's most visited one,
    of which noise, prior and value choose; without any visits, PUCT takes the move with the highest prior. Above 0 a
    move is drawn from policy ** (1 / temperature), so visits that only noise and forced playouts caused do not count.
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
        policy = selection.improved_policy(row, settings)
        new = row.visits - tree.base
        best = jnp.where(new == new.max(), tree.noise + selection.improved_logits(row, settings), -jnp.inf)
    else:
        policy = puct_policy(row, tree.noise, settings)
        best = jnp.where(row.legal, jnp.where(row.visits.sum() > 0, lower_bounds(row, settings), policy), -jnp.inf)
    drawn = jax.random.categorical(key, jnp.log(policy) / jnp.maximum(temperature, 1e-6))
    action = jnp.where(temperature > 0, drawn, jnp.argmax(best))
    action = jnp.where(row.legal.any(), action, -1)
    children = jnp.maximum(tree.child[tree.root].astype(jnp.int32), 0)  # of moves without one, nothing is used
    if parts(settings):
        sign = 1.0 - 2.0 * tree.player[tree.root]
        means = sign * tree.apart[children] / jnp.maximum(tree.visits[children], 1)[:, None]
        mean = sign * tree.apart[tree.root] / jnp.maximum(tree.visits[tree.root], 1)
        value, score = _worth(row, policy, means, mean, settings)
    else:
        value, score = _worth(row, policy, row.means[:, None], row.node_value, settings)[0], None
    surprise = jnp.where(policy > 0, policy * (jnp.log(policy) - jax.nn.log_softmax(row.logits)), 0).sum()
    return SearchResult(row.visits.astype(jnp.int32), policy, value, action.astype(jnp.int32), surprise, score)


def _worth(
    row: NodeRow,
    policy: PerMove,
    means: Float32[Array, "actions parts"],
    mean: Float32[Array, " parts"],
    settings: SearchSettings,
) -> Float32[Array, " parts"]:
    """What a root is worth, given the mean results of its moves and of all its visits.

    Gumbel gives most visits of a root to moves that turn out to be bad, so the mean of all visits is too low: the
    moves count by the policy that was found. PUCT visits moves by how good they are.
    """
    if settings.algorithm == "puct":
        return mean
    weights = jnp.where(row.visits > 0, policy, 0)[:, None]
    known = jnp.where(row.visits[:, None] > 0, means, 0)
    return jnp.where(weights.sum() > 0, (weights * known).sum(0) / jnp.maximum(weights.sum(), _TINY), mean)


def lower_bounds(row: NodeRow, settings: SearchSettings) -> PerMove:
    """What PUCT's move to play has most of: see `bounded`; with `SearchSettings.lower_bound` 0, the visits."""
    return bounded(row.visits, row.means, settings.lower_bound) if settings.lower_bound else row.visits


def bounded(visits: Any, means: Any, weight: float, xp: Any = jnp) -> Any:
    """Values that are almost certain: the fewer visits a move has, the further below its mean.

    -inf for moves with fewer than `_ENOUGH` of the most visits: a long search has just begun to look at them. The
    arrays are those of the module `xp`: jax.numpy or NumPy.
    """
    bounds = means - weight / xp.sqrt(xp.maximum(visits, 1))
    return xp.where((visits > 0) & (visits >= _ENOUGH * visits.max()), bounds, -xp.inf)


def puct_policy(row: NodeRow, noise: PerMove, settings: SearchSettings) -> PerMove:
    """The share of visits, less those that only noise and forced playouts caused.

    Every move but the most visited loses visits as long as its score stays below that of the most visited one.
    """
    visits = row.visits
    if settings.forced_playouts > 0:
        prior = selection.root_prior(row, noise, settings)
        scores = selection.puct_scores(row, prior, settings.root_fpu_reduction, settings)
        best = jnp.argmax(visits)
        gap = scores[best] - row.means
        enough = jnp.ceil(selection.exploration(row, settings) * prior / jnp.maximum(gap, 1e-9) - 1)
        pruned = jnp.where(gap > 0, jnp.clip(enough, 0, visits), visits)
        pruned = jnp.where(pruned <= 1, 0, pruned)  # a single visit says nothing about a move
        visits = jnp.where((jnp.arange(len(visits)) == best) | (visits == 0), visits, pruned)
    prior = jnp.where(row.legal, jnp.exp(row.logits), 0)
    total = visits.sum()
    return jnp.where(total > 0, visits / jnp.maximum(total, 1), prior)
