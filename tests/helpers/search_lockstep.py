"""A recorded search and the oracle's side by side: after every step the trees must be the same, node by node."""

import math
from typing import Any

import jax
import numpy as np

from tengen.search.tree import Tree
from tests.helpers.recorded_search import Plan, Recorded
from tests.helpers.search_positions import Played
from tests.oracles.search import Node, Position, Search


def compare(
    plan: Plan,
    states: Any,
    recorded: Recorded,
    begins: np.ndarray,
    advances: np.ndarray,
    evaluator: tuple[float, float],
) -> None:
    """Fail where the recorded searches of the positions `states` [B, ...] are not the oracle's."""

    def evaluate(position: Position) -> tuple[np.ndarray, float, tuple[float, float]]:
        assert isinstance(position, Played)
        return position.evaluate(*evaluator)

    moves, steps, batch = recorded.trees.root.shape
    for game in range(batch):
        position = Played(plan.game, jax.tree.map(lambda leaf, game=game: leaf[game], states))
        side = plan.game.planes_shape[0] if plan.game.target("score") else None
        search = Search(position, evaluate, plan.settings, np.zeros(plan.game.num_actions), 0, side)
        known = False  # the oracle evaluates a root at once, the search in the first step that it has to do
        for move in range(moves):
            if begins[move, game]:
                search.begin(np.asarray(recorded.begun.noise[move, game]), int(recorded.begun.budget[move, game]))
            for step in range(steps):
                if known:
                    search.simulate()
                known = known or search.running
                if known:
                    _compare_tree(recorded, (move, step, game), search)
            if advances[move, game]:
                action = int(recorded.actions[move, game])
                search.advance(action)
                known = known and search.root.visits > 0
                search.budget = search.done = 0


def _compare_tree(recorded: Recorded, at: tuple[int, int, int], search: Search) -> None:
    """One tree and its summary after one step."""
    tree, result = recorded.trees, recorded.results
    where = "move {}, step {}, game {}".format(*at)
    assert tree.done[at] == search.done, where
    _compare_nodes(tree, at, int(tree.root[at]), search.root, where)
    assert tree.used[at] == search.count_nodes(), where
    np.testing.assert_array_equal(result.visits[at], search.visits, where)
    np.testing.assert_allclose(result.value[at], search.root_value, rtol=1e-4, atol=1e-5, err_msg=where)
    if result.score is not None:
        np.testing.assert_allclose(result.score[at], search.root_score, rtol=1e-4, atol=1e-4, err_msg=where)
    if not search.root.position.over:
        np.testing.assert_allclose(result.policy[at], search.policy, rtol=2e-3, atol=1e-5, err_msg=where)
        assert result.action[at] == search.action, where


def _compare_nodes(tree: Tree, at: tuple[int, ...], slot: int, node: Node, where: str) -> None:
    """A node and all that is below it."""
    here = (*at, slot)
    assert tree.visits[here] == node.visits, where
    assert tree.player[here] == node.position.to_play, where
    assert tree.over[here] == node.position.over, where
    assert math.isclose(tree.total[here], node.total, rel_tol=1e-4, abs_tol=1e-5), where
    assert math.isclose(tree.value[here], node.own_value, rel_tol=1e-5, abs_tol=1e-6), where
    if tree.apart.shape[-1]:
        np.testing.assert_allclose(tree.apart[here], node.apart, rtol=1e-4, atol=1e-4, err_msg=where)
    logits = np.asarray(tree.logits[here], np.float32)
    assert ((logits > -np.inf) == node.legal).all(), where
    # Half precision: its last bit may differ where single precision's does.
    prior = node.log_prior[node.legal]
    assert (np.abs(logits[node.legal] - prior) <= 2e-3 * np.abs(prior) + 1e-6).all(), where
    children = np.asarray(tree.child[here])
    assert np.flatnonzero(children >= 0).tolist() == sorted(node.children), where
    for action, child in node.children.items():
        _compare_nodes(tree, at, int(children[action]), child, f"{where}, {action}")
