"""What holds in every tree, whatever the positions, budgets, evaluations and moves are."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tengen.search.points import centre, scale
from tengen.search.tree import Tree
from tests.helpers.recorded_search import BATCH, CHOSEN, MOVES, Plan, Recorded, play, reachable
from tests.helpers.search_plans import FULL_PUCT, GUMBEL, LEAFY_PUCT
from tests.helpers.search_positions import Played, roots

PLANS = {"gumbel": GUMBEL, "puct": FULL_PUCT, "puct, three leaves": LEAFY_PUCT}


class Inputs(NamedTuple):
    """What a recorded search is given; arrays are [M, B]."""

    positions: int
    seed: int
    budgets: np.ndarray
    begins: np.ndarray
    advances: np.ndarray
    wishes: np.ndarray
    sharpness: float


class Session(NamedTuple):
    """A recorded search, and what it was given."""

    plan: Plan
    inputs: Inputs
    recorded: Recorded

    def root(self, move: int, game: int) -> Played:
        """The position that is searched for that move, by playing the moves."""
        states = roots(self.plan.game, BATCH, self.inputs.positions)
        position = Played(self.plan.game, jax.tree.map(lambda leaf: leaf[game], states))
        for earlier in np.flatnonzero(self.inputs.advances[:move, game]):
            position.play(int(self.recorded.actions[earlier, game]))
        return position


def table(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[np.ndarray]:
    """[M, B]."""
    flat = st.lists(elements, min_size=MOVES * BATCH, max_size=MOVES * BATCH)
    return flat.map(lambda drawn: np.array(drawn).reshape(MOVES, BATCH))


# Positions, finished ones too. A game may be idle, be searched on without a move, or go on with a move that is not the
# search's choice.
INPUTS = st.builds(
    Inputs,
    positions=st.integers(0, 4),
    seed=st.integers(0, 1000),
    budgets=table(st.integers(0, 24)),
    begins=table(st.sampled_from([True, True, True, False])),
    advances=table(st.sampled_from([True, True, False])),
    wishes=table(st.sampled_from([CHOSEN, 0, 5])),
    sharpness=st.sampled_from([0.0, 2.0, 8.0]),
)


def searched(plan: Plan, inputs: Inputs) -> Session:
    states = roots(plan.game, BATCH, inputs.positions)
    given = inputs.budgets, inputs.seed, inputs.begins, inputs.advances, inputs.wishes
    return Session(plan, inputs, play(plan, states, *given, evaluator=(inputs.sharpness, 1.0)))


def check_budget(session: Session, move: int, game: int) -> None:
    """A search does exactly what it was asked for, and nothing where the game is over."""
    begun, trees, results = session.recorded.begun, session.recorded.trees, session.recorded.results
    at, root = (move, -1, game), trees.root[move, -1, game]
    over = session.root(move, game).over
    assert trees.over[(*at, root)] == over
    before = begun.visits[move, game, root]
    if session.inputs.begins[move, game]:
        assert begun.done[move, game] == 0
        assert begun.budget[move, game] == session.inputs.budgets[move, game]
    left_to_do = 0 if over else begun.budget[move, game] - begun.done[move, game]
    assert trees.visits[(*at, root)] == before + left_to_do + (left_to_do > 0 and before == 0)
    if not over:
        assert trees.done[at] == trees.budget[at]
        known = session.recorded.begun.base[move, game].sum()
        if session.inputs.begins[move, game]:
            assert results.visits[at].sum() == known + trees.budget[at]


def check_root(session: Session, move: int, game: int) -> None:
    """What is said about the root fits the position."""
    results, at = session.recorded.results, (move, -1, game)
    visits, policy, action = results.visits[at], results.policy[at], int(results.action[at])
    position = session.root(move, game)
    legal = np.array(position.legal_actions())
    assert not visits[~legal].any()
    assert not policy[~legal].any()
    assert (policy >= 0).all()
    assert -1 <= results.value[at] <= 1
    evaluated = session.recorded.trees.visits[(*at, session.recorded.trees.root[at])] > 0
    if position.over or not evaluated:
        assert not policy.any()
        assert not visits.any()
    else:
        assert abs(policy.sum() - 1) < 1e-3
        assert legal[action]


def check_nodes(tree: Tree, at: tuple[int, ...]) -> None:
    """No slot is lost or used twice, parents and children know each other, visits and values add up."""
    slots, used = tree.visits.shape[-1], tree.used[at]
    nodes = reachable(tree, at)
    assert sorted(tree.free[at].tolist()) == list(range(slots))
    assert sorted(nodes) == sorted(tree.free[at][:used].tolist())
    if tree.visits[at][nodes[0]] == 0:
        assert len(nodes) == 1
        return
    assert tree.parent[at][nodes[0]] == -1
    for node in nodes:
        children = tree.child[at][node]
        there = children[children >= 0]
        assert (tree.parent[at][there] == node).all()
        assert (tree.logits[at][node][children >= 0] > -np.inf).all(), "an illegal move was visited"
        visits, total, value = (table[at] for table in (tree.visits, tree.total, tree.value))
        most = 1 + tree.settings.score_weight
        assert abs(value[node]) <= most
        assert abs(total[node]) <= most * visits[node] + 1e-4
        own = visits[node] - visits[there].sum()
        if tree.over[at][node]:
            assert len(there) == 0
        else:
            assert own == 1 or (own > 1 and tree.settings.leaves > 1)  # walks of one batch may share a new leaf
        assert abs(total[node] - own * value[node] - total[there].sum()) < 1e-4
        if own == 1 and tree.settings.score_weight:
            won, points = tree.apart[at][node] - tree.apart[at][there].sum(0)
            assert abs(won) <= 1 + 1e-4
            assert abs(points) <= 10 + 1e-3


def check_advance(session: Session, move: int, game: int) -> None:
    """The tree below the move stays as it was; a game that does not move keeps every bit."""
    before, after = session.recorded.trees, session.recorded.left
    old, new = (move, -1, game), (move, game)
    if not session.inputs.advances[move, game]:
        for left, right in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
            np.testing.assert_array_equal(left[old], right[new])
        return
    assert after.done[new] == after.budget[new] == 0
    action = int(session.recorded.actions[new])
    root = int(before.root[old])
    child = int(before.child[old][root, action]) if before.visits[old][root] > 0 else -1
    if child < 0 or _far_from_centre(before, old, child):
        assert after.used[new] == 1
        assert after.visits[new][after.root[new]] == 0
        return
    pairs = [(child, int(after.root[new]))]
    for there, here in pairs:
        for name in ("logits", "state", "visits", "total", "value", "apart", "player", "over"):
            tables = (jax.tree.leaves(getattr(tree, name)) for tree in (before, after))
            for was, now in zip(*tables, strict=True):
                np.testing.assert_array_equal(was[old][there], now[new][here])
        was, now = before.child[old][there], after.child[new][here]
        np.testing.assert_array_equal(was >= 0, now >= 0)
        pairs.extend(zip(was[was >= 0].tolist(), now[now >= 0].tolist(), strict=True))
    assert after.used[new] == len(pairs)


def _far_from_centre(tree: Tree, at: tuple[int, ...], node: int) -> bool:
    """Whether the tree's utilities make no sense below a node, because points count most elsewhere."""
    if not tree.settings.score_weight:
        return False
    expected = tree.apart[at][node, 1] / tree.visits[at][node]
    return abs(float(centre(jnp.float32(expected), tree.game)) - float(tree.centre[at])) > scale(tree.game)


@pytest.mark.parametrize(
    "plan",
    [pytest.param(plan, id=name, marks=pytest.mark.slow if name != "puct" else ()) for name, plan in PLANS.items()],
)
def test_budgets_roots_nodes_and_moves(plan: Plan) -> None:
    @given(INPUTS)
    @settings(max_examples=10)
    def hold(inputs: Inputs) -> None:
        session = searched(plan, inputs)
        for move in range(MOVES):
            for game in range(BATCH):
                check_budget(session, move, game)
                check_root(session, move, game)
                check_nodes(session.recorded.trees, (move, -1, game))
                check_nodes(session.recorded.left, (move, game))
                check_advance(session, move, game)

    hold()


@pytest.mark.slow
@pytest.mark.parametrize("plan", [pytest.param(plan, id=name) for name, plan in PLANS.items()])
def test_a_game_does_not_depend_on_the_others(plan: Plan) -> None:
    noise = np.random.default_rng(0).dirichlet(np.ones(9), (MOVES, BATCH))  # drawn, it would depend on the place

    @given(INPUTS, INPUTS, st.integers(0, BATCH - 1), st.integers(0, BATCH - 1))
    @settings(max_examples=10)
    def hold(inputs: Inputs, others: Inputs, game: int, place: int) -> None:
        def put(mine: np.ndarray, theirs: np.ndarray, axis: int) -> np.ndarray:
            theirs = np.moveaxis(theirs.copy(), axis, 0)
            theirs[place] = np.moveaxis(mine, axis, 0)[game]
            return np.moveaxis(theirs, 0, axis)

        states, elsewhere = (roots(plan.game, BATCH, one.positions) for one in (inputs, others))
        tables = [(one.budgets, one.begins, one.advances, one.wishes, noise) for one in (inputs, others)]
        moved = jax.tree.map(lambda mine, theirs: put(mine, theirs, 0), states, elsewhere)
        mixed = [put(mine, theirs, 1) for mine, theirs in zip(*tables, strict=True)]
        evaluator = (inputs.sharpness, 1.0)
        alone = play(plan, states, tables[0][0], 0, *tables[0][1:], evaluator=evaluator)
        among = play(plan, moved, mixed[0], 0, *mixed[1:], evaluator=evaluator)
        for name in ("trees", "results"):
            pairs = zip(jax.tree.leaves(getattr(alone, name)), jax.tree.leaves(getattr(among, name)), strict=True)
            for mine, there in pairs:
                np.testing.assert_array_equal(mine[:, :, game], there[:, :, place])

    hold()


@pytest.mark.slow
def test_a_finished_game_keeps_an_empty_tree() -> None:
    finished = 1  # the second of `roots`
    for plan in PLANS.values():
        recorded = play(plan, roots(plan.game, BATCH))
        trees, results = recorded.trees, recorded.results
        assert (trees.used[:, :, finished] == 1).all()
        for empty in (trees.visits, trees.total, trees.done, results.visits, results.policy):
            assert not empty[:, :, finished].any()
        assert (trees.child[:, :, finished] == -1).all()


@pytest.mark.slow
def test_a_full_tree_goes_on_without_new_leaves() -> None:
    # 8 slots for 24 simulations. Roots count every simulation, values stay in range, nothing outside is written.
    plan = FULL_PUCT._replace(slots=8)
    most = 1 + plan.settings.score_weight  # a value and its points

    @given(INPUTS)
    @settings(max_examples=10)
    def hold(inputs: Inputs) -> None:
        session = searched(plan, inputs)
        trees, results = session.recorded.trees, session.recorded.results
        assert trees.used.max() <= 8
        assert (np.abs(trees.total) <= most * trees.visits + 1e-4).all()
        assert (np.abs(results.value) <= 1).all()
        for move in range(MOVES):
            for game in range(BATCH):
                at = (move, -1, game)
                assert sorted(reachable(trees, at)) == sorted(trees.free[at][: trees.used[at]].tolist())
                assert not results.visits[at][~session.root(move, game).look.legal].any()
                if not session.root(move, game).over:
                    assert trees.done[at] == trees.budget[at]
                check_advance(session, move, game)

    hold()
