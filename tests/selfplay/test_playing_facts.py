"""What records know of a search, read off a tree by hand."""

import jax
import numpy as np
import pytest

from tengen import search
from tengen.selfplay.playing import search_facts
from tests.helpers.game_recording import jit
from tests.helpers.recorded_search import BATCH, Plan, play
from tests.helpers.search_plans import FULL_PUCT, GUMBEL
from tests.helpers.search_positions import roots


@pytest.mark.parametrize(
    "plan", [pytest.param(FULL_PUCT, id="puct"), pytest.param(GUMBEL, id="gumbel", marks=pytest.mark.slow)]
)
def test_facts_are_those_of_the_tree(plan: Plan) -> None:
    recorded = play(plan, roots(plan.game, BATCH))
    trees = jax.tree.map(lambda leaf: leaf[0, -1], recorded.trees)  # after a whole search, [B, ...]
    result = jit(search.summarise)(trees, jax.random.key(0), np.float32(0))
    policy = np.asarray(result.policy)
    legal = np.isfinite(trees.logits[np.arange(BATCH), trees.root])
    played = legal.shape[1] - 1 - legal[:, ::-1].argmax(1)  # the last legal move
    facts = {name: np.asarray(values) for name, values in jit(search_facts)(trees, result, played).items()}
    ends = []
    for game in np.flatnonzero(legal.any(1)):  # those that are not over
        one = jax.tree.map(lambda leaf, game=game: np.asarray(leaf[game]), trees)
        root = int(one.root)
        sign = 1 - 2 * int(one.player[root])
        children = {move: int(child) for move, child in enumerate(one.child[root]) if child >= 0}
        visits = {move: int(one.visits[child]) for move, child in children.items()}
        best = int(facts["best"][game])
        assert visits[best] == max(visits.values())
        assert facts["visits"][game] == one.visits[root]
        assert facts["network_value"][game] == pytest.approx(sign * one.value[root])
        whole = float(result.value[game])  # what the position is worth; a move without a visit has nothing of its own
        for name, move in (("best", best), ("played", int(played[game]))):
            child = children.get(move)
            value = whole if child is None else sign * one.total[child] / one.visits[child]
            assert facts[f"{name}_value"][game] == pytest.approx(value, abs=1e-5)
            assert facts[f"{name}_ends"][game] == (0 if child is None else one.over[child])
        ends.append(int(facts["best_ends"][game]))
        prior = np.exp(one.logits[root].astype(np.float64))
        shares = policy[game].astype(np.float64)
        kld = sum(share * np.log(share / prior[move]) for move, share in enumerate(shares) if share > 0)
        assert facts["policy_kld"][game] == pytest.approx(kld, abs=1e-3)
    assert 0 < sum(ends) < len(ends)
