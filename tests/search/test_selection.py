"""Sequential halving, against mctx's sequences."""

import jax
import numpy as np
import pytest
from mctx._src import seq_halving

from tengen.config.settings.search import SearchSettings
from tengen.search.selection import considered_moves, wanted_visits
from tests.helpers.game_recording import jit
from tests.oracles.search import sequence_of_considered_visits

BUDGETS = [*range(1, 71), 128, 200]


@pytest.mark.parametrize("most", [16, 20, 512])
def test_wanted_visits_are_mctxs(most: int) -> None:
    # In one search (one `most`) games differ in their legal moves and budgets.
    considered = [count for count in [*range(1, 21), 31, 32, 33, 64, 128, 256, 511, 512] if count <= most]
    grid = np.array([(count, budget, done) for count in considered for budget in BUDGETS for done in range(budget)])
    wanted = jit(jax.vmap(lambda count, budget, done: wanted_visits(count, most, budget, done)))
    expected = [
        seq_halving.get_sequence_of_considered_visits(count, budget) for count in considered for budget in BUDGETS
    ]
    np.testing.assert_array_equal(wanted(*grid.T.astype(np.int32)), np.concatenate(expected))


def test_the_oracle_has_mctxs_sequences() -> None:
    for count in range(1, 40):
        for budget in BUDGETS:
            expected = seq_halving.get_sequence_of_considered_visits(count, budget)
            assert tuple(sequence_of_considered_visits(count, budget)) == expected


@pytest.mark.parametrize(
    ("budget", "each", "considered"),
    [(1, 1, 2), (8, 1, 8), (31, 1, 16), (4, 2, 2), (5, 2, 3), (7, 2, 4), (8, 2, 4), (31, 2, 16), (31, 4, 8)],
)
def test_so_many_moves_are_considered_as_can_have_their_visits(budget: int, each: int, considered: int) -> None:
    settings = SearchSettings(considered=16, considered_visits=each)
    assert considered_moves(np.int32(budget), settings) == considered
    assert considered_moves(np.int32(budget), SearchSettings(considered=1, considered_visits=each)) == 1
