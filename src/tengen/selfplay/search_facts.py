"""What Lc0's training records hold about a search besides its policy and value; see data/format/lc0_writing.py."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32

from tengen.games.core import Observation
from tengen.search.result import SearchResult
from tengen.search.tree import Tree
from tengen.search.walk import row_at


def search_facts(tree: Tree, result: SearchResult, action: Int32[Array, " batch"]) -> dict[str, Array]:
    """Facts about the search with this result, and about the move that is played; [B] each."""
    return jax.vmap(_of_one)(tree, result.policy, action) | {"policy_kld": result.surprise}


def network_facts(evaluate: Any, parameters: Any, observation: Observation) -> dict[str, Array]:
    """Other outputs of a network for the positions [B, ...]: the probability of a draw, and the moves left."""
    outputs = evaluate.outputs(parameters, observation)
    draw = jax.nn.softmax(outputs.value)[:, 1]
    moves_left = jnp.full_like(draw, jnp.nan) if outputs.moves_left is None else outputs.moves_left
    return {"network_draw": draw, "network_moves_left": moves_left}


def _of_one(tree: Tree, policy: Array, action: Array) -> dict[str, Array]:
    row = row_at(tree, tree.root, None)
    # The most visited move; a policy below 1 only decides between equal visits.
    best = jnp.argmax(jnp.where(row.legal, row.visits + 0.5 * policy, -1))
    facts = {"network_value": row.first_value[0], "visits": row.node_visits[0], "best": best.astype(jnp.float32)}
    for name, move in (("best", best), ("played", action)):
        child = tree.child[tree.root, move].astype(jnp.int32)
        # A move without a visit has the value of the position.
        facts[f"{name}_value"] = jnp.where(row.visits[move] > 0, row.means[move], row.node_value[0])
        facts[f"{name}_ends"] = jnp.where(child >= 0, tree.over[child], 0).astype(jnp.float32)
    return facts
