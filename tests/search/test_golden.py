"""Small trees of tic-tac-toe worked out by hand: uniform priors, an evaluator that calls everything a draw."""

import jax
import numpy as np

from tengen.search.result import SearchResult
from tengen.search.tree import Tree
from tests.helpers.recorded_search import BATCH, MOVES, Plan, play
from tests.helpers.search_plans import GUMBEL, PUCT, TIC_TAC_TOE
from tests.helpers.search_positions import after, stacked

NEW: list[int] = []
#  x o x   x to move: only 5 stops o's row 3 4 5. Then x threatens 8, and o must answer there.
#  o o .   After 5 8 6 the board is full; after 5 6 x wins with 8; after anything but 5 o wins with 5.
#  . x .
CRITICAL = [0, 1, 2, 3, 7, 4]


def searched(plan: Plan, moves: list[int], simulations: int) -> tuple[list[Tree], list[SearchResult]]:
    """One tree after the evaluation of its root and after each simulation; c = 1 and no noise."""
    states = stacked([after(TIC_TAC_TOE, moves)] * BATCH)
    noise = np.zeros((MOVES, BATCH, 9))
    recorded = play(plan, states, np.full((MOVES, BATCH), simulations), noise=noise, evaluator=(0.0, 0.0))

    def at(step: int, whole: Tree | SearchResult) -> Tree | SearchResult:
        return jax.tree.map(lambda leaf: leaf[0, step, 0], whole)

    trees = [at(step, recorded.trees) for step in range(simulations + 1)]
    results = [at(step, recorded.results) for step in range(simulations + 1)]
    return trees, results  # pyright: ignore[reportReturnType]


def statistics(tree: Tree, *path: int) -> tuple[int, float]:
    """(visits, sum of values for x) of the node at the end of the path; (0, 0) if there is none."""
    node = int(tree.root)
    for action in path:
        node = int(tree.child[node, action])
        if node < 0:
            return 0, 0.0
    return int(tree.visits[node]), float(tree.total[node])


def test_puct_without_knowledge_goes_round_in_order() -> None:
    # All scores are sqrt(N) / 9 / (1 + n): the least visited move is next, of several the first. The second visit to
    # a move goes on to the first reply that is free: 1 after 0, otherwise 0.
    trees, results = searched(PUCT, NEW, 14)
    for count, result in enumerate(results):
        expected = [count // 9 + (action < count % 9) for action in range(9)]
        assert result.visits.tolist() == expected
        assert result.value == 0
    for action in range(5):
        reply = 1 if action == 0 else 0
        assert statistics(trees[10 + action], action, reply) == (1, 0)
        assert statistics(trees[9 + action], action, reply) == (0, 0)


def test_puct_tree_by_hand() -> None:
    # Score: q + sqrt(N) p / (1 + n), p = 1/3 at the root, 1/2 after x's move, 1 after o's.
    expected = [
        # N, total; visits and totals of 5, 6, 8; and of the replies 5 6, 5 8
        ((1, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)),  # the root is evaluated
        ((2, 0), (1, 0), (0, 0), (0, 0), (0, 0), (0, 0)),  # a tie: the first, 5
        ((3, 0), (1, 0), (1, 0), (0, 0), (0, 0), (0, 0)),  # 5: .236, others .471: 6
        ((4, 0), (1, 0), (1, 0), (1, 0), (0, 0), (0, 0)),  # 5, 6: .289, 8: .577
        ((5, 0), (2, 0), (1, 0), (1, 0), (1, 0), (0, 0)),  # a tie: 5, then a tie: 6
        ((6, -1), (2, 0), (2, -1), (1, 0), (1, 0), (0, 0)),  # 5: .248, others .373: 6, then 5 and o has won
        ((7, -2), (2, 0), (2, -1), (2, -1), (1, 0), (0, 0)),  # 5: .272, 6: -.5 + .272, 8: .408, then 5: o has won
        ((8, -2), (3, 0), (2, -1), (2, -1), (1, 0), (1, 0)),  # 5: .294, others below 0; then 6: .354, 8: .707
        ((9, -1), (4, 1), (2, -1), (2, -1), (2, 1), (1, 0)),  # 5: .236; a tie: 6, then 8 and x has won
        ((10, -1), (5, 1), (2, -1), (2, -1), (2, 1), (2, 0)),  # 5: .25 + .2; for o 6 is -.5 + .333, 8 is .5: a draw
        (
            (11, -1),
            (6, 1),
            (2, -1),
            (2, -1),
            (2, 1),
            (3, 0),
        ),  # 5: .2 + .176; for o 6 is -.127, 8 is .373: that draw again
    ]
    trees, results = searched(PUCT, CRITICAL, 10)
    for tree, known in zip(trees, expected, strict=True):
        found = tuple(statistics(tree, *path) for path in ((), (5,), (6,), (8,), (5, 6), (5, 8)))
        assert found == known
    assert int(trees[-1].used) == 1 + 3 + 2 + 2 + 2  # moves; replies to 5; wins for o; ends after 5 6 and 5 8
    assert results[-1].action == 5
    assert results[-1].visits.tolist() == [0, 0, 0, 0, 0, 6, 2, 0, 2]
    np.testing.assert_allclose(results[-1].policy, [0, 0, 0, 0, 0, 0.6, 0.2, 0, 0.2], rtol=1e-6)
    np.testing.assert_allclose(results[-1].value, -1 / 11, rtol=1e-6)


def test_gumbel_tree_by_hand() -> None:
    # Three legal moves, so three are considered, then two; with 8 simulations those with 0 0 0 1 1 2 2 3 visits.
    # The prior is uniform: values decide. o's move after x's is the one whose share is furthest behind.
    expected = [
        # N, total; visits and totals of 5, 6, 8; and of the replies 5 6, 5 8
        ((1, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)),
        ((2, 0), (1, 0), (0, 0), (0, 0), (0, 0), (0, 0)),  # wanted 0: 5
        ((3, 0), (1, 0), (1, 0), (0, 0), (0, 0), (0, 0)),  # wanted 0: 6
        ((4, 0), (1, 0), (1, 0), (1, 0), (0, 0), (0, 0)),  # wanted 0: 8
        ((5, 0), (2, 0), (1, 0), (1, 0), (1, 0), (0, 0)),  # wanted 1: all, a tie: 5, then a tie: 6
        ((6, -1), (2, 0), (2, -1), (1, 0), (1, 0), (0, 0)),  # wanted 1: 6 and 8, a tie: 6, then 5 and o has won
        (
            (7, -1),
            (3, 0),
            (2, -1),
            (1, 0),
            (1, 0),
            (1, 0),
        ),  # wanted 2: 5 (worth 0) and 6 (-.5); then 8, as 6 has a visit
        ((8, -2), (3, 0), (3, -2), (1, 0), (1, 0), (1, 0)),  # wanted 2: 6; o's 5 is worth 1, 8 the mixed .5: 5 again
        ((9, -1), (4, 1), (3, -2), (1, 0), (2, 1), (1, 0)),  # wanted 3: 5 (0), 6 (-.667); a tie: 6, then 8: x has won
    ]
    trees, results = searched(GUMBEL, CRITICAL, 8)
    for tree, known in zip(trees, expected, strict=True):
        found = tuple(statistics(tree, *path) for path in ((), (5,), (6,), (8,), (5, 6), (5, 8)))
        assert found == known
    assert results[-1].action == 5
    assert results[-1].visits.tolist() == [0, 0, 0, 0, 0, 4, 3, 0, 1]
    # Values 1/4, -2/3, 0 become 1, 0, 8/11, times (50 + 4) / 10: 5.4, 0, 3.927; the policy is their softmax.
    weights = np.exp([5.4, 0, 5.4 * 8 / 11])
    np.testing.assert_allclose(results[-1].policy[[5, 6, 8]], weights / weights.sum(), rtol=1e-4)
    np.testing.assert_allclose(results[-1].policy[[5, 6, 8]], [0.8105, 0.0037, 0.1858], atol=1e-4)
    # The mean of all visits would be -1/9, because the search had to try 6 as well.
    np.testing.assert_allclose(results[-1].value, (weights @ [1 / 4, -2 / 3, 0]) / weights.sum(), rtol=1e-4)
