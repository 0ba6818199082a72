"""The GPU programs against the plain versions: the same trees, bit by bit, emulated on a CPU and compiled on a GPU."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import search
from tengen.config.settings.search import SearchSettings
from tests.helpers.game_recording import make
from tests.helpers.recorded_search import BATCH, CHOSEN, MOVES, Plan, Recorded, play
from tests.helpers.search_plans import FULL_PUCT, GUMBEL, STRANGE_GUMBEL
from tests.helpers.search_positions import FEW_LEGAL, MANY_LEGAL, UNLISTED, roots

SMOOTH, SHARP = (2.0, 1.0), (8.0, 0.7)
GO = make("go", size=3, komi=0.5, max_moves=30)
CASES = {
    "puct, the same player twice": (FULL_PUCT, SMOOTH),
    "puct, few moves of many": (FULL_PUCT._replace(game=FEW_LEGAL), SMOOTH),
    "gumbel, sharp": (GUMBEL, SHARP),
    "gumbel, two or three moves": (
        Plan(GUMBEL.game, replace(GUMBEL.settings, considered=9, considered_visits=10)),
        SHARP,
    ),
    "gumbel, few moves of many": (GUMBEL._replace(game=FEW_LEGAL), SHARP),
    "puct, many moves of more": (FULL_PUCT._replace(game=MANY_LEGAL), SMOOTH),
    "gumbel, many moves of more": (GUMBEL._replace(game=MANY_LEGAL), SHARP),
    "gumbel, several warps": (GUMBEL._replace(game=UNLISTED), SHARP),
    "gumbel, go, out of room": (Plan(GO, SearchSettings(algorithm="gumbel", simulations=20), slots=30), SMOOTH),
}


def slow_cases() -> Iterator[tuple[str, Plan, tuple[float, float]]]:
    points = SearchSettings(algorithm="gumbel", simulations=20, score_weight=0.4)
    yield "go, points", Plan(GO, points), SMOOTH
    yield "go, points, out of room", Plan(GO, points, slots=30), SHARP
    for game in (
        make("connect_four"),
        make("othello"),
        make("hex", size=3, swap=True),
        make("go", size=2, ko="simple"),
        make("go", size=5),
        make("hironaka", dimension=3, max_moves=12),
        make("chess"),
    ):
        for settings in (
            SearchSettings(algorithm="puct", simulations=40),
            SearchSettings(algorithm="gumbel", simulations=40, considered=4, **STRANGE_GUMBEL),
        ):
            for slots, evaluator in ((None, SMOOTH), (50, SHARP)):
                name = f"{game.name}, {game.num_actions}, {settings.algorithm}, {slots}"
                yield name, Plan(game, settings, slots), evaluator


def recorded(plan: Plan, evaluator: tuple[float, float], kernels: Any) -> Recorded:
    """Three searches with a move or none in between."""
    budgets = np.full((MOVES, BATCH), plan.settings.simulations)
    budgets[1] -= np.arange(BATCH)
    begins, advances = np.ones((MOVES, BATCH), bool), np.ones((MOVES, BATCH), bool)
    advances[0, 3] = advances[1, 4] = begins[2, 4] = False
    wishes = np.full((MOVES, BATCH), CHOSEN)
    wishes[0, 5] = wishes[1, 0] = 4
    chosen = plan._replace(settings=replace(plan.settings, kernels=kernels))
    states = roots(plan.game, BATCH)
    return play(chosen, states, budgets, 0, begins, advances, wishes, evaluator=evaluator)


def assert_same(plan: Plan, evaluator: tuple[float, float], kernels: Any) -> None:
    plain, programs = (recorded(plan, evaluator, which) for which in ("plain", kernels))
    for one, other in zip(plain, programs, strict=True):
        for (path, left), (_, right) in zip(
            jax.tree_util.tree_leaves_with_path(_comparable(one)),
            jax.tree_util.tree_leaves_with_path(_comparable(other)),
            strict=True,
        ):
            name = jax.tree_util.keystr(path)
            # Noise and the worth of points are computed before the two, in programs that may round differently.
            if name == ".noise" or (plan.settings.score_weight and left.dtype == np.float32):
                np.testing.assert_allclose(left, right, rtol=1e-5, atol=2e-6, err_msg=name)
            else:
                np.testing.assert_array_equal(left, right, err_msg=name)
    visits = plain.results.visits.sum(-1)[:, -1]
    assert visits.any()


def _comparable(part: Any) -> Any:
    """Without what only the programs keep."""
    return replace(part, onward=None, moves=None, settings=None) if isinstance(part, search.Tree) else part


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.parametrize(
    ("plan", "evaluator"),
    [
        pytest.param(*case, id=name, marks=pytest.mark.slow if number else ())
        for number, (name, case) in enumerate(CASES.items())
    ]
    + [pytest.param(*case, id=f"slow, {name}", marks=pytest.mark.slow) for name, *case in slow_cases()],
)
def test_emulated_programs_grow_the_same_trees(plan: Plan, evaluator: tuple[float, float]) -> None:
    assert_same(plan, evaluator, "gpu")


@pytest.mark.slow
@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.parametrize(
    ("plan", "evaluator"),
    [(FULL_PUCT, (2.0, np.nan)), (FULL_PUCT._replace(game=FEW_LEGAL), (np.nan, 1.0))],
    ids=["values", "logits in lists of moves"],
)
def test_values_that_are_not_numbers_write_nowhere_else(plan: Plan, evaluator: tuple[float, float]) -> None:
    """A diverged network is noticed only after the search; until then every leaf hangs where its parent says."""
    tree = recorded(plan, evaluator, "gpu").trees
    assert np.isnan(tree.total).any() or np.isnan(tree.logits).any()
    *which, nodes, actions = np.nonzero(tree.child >= 0)
    assert len(nodes)
    np.testing.assert_array_equal(tree.parent[*which, tree.child[*which, nodes, actions]], nodes)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("plan", "evaluator"),
    [pytest.param(*case, id=name) for name, case in CASES.items()]
    + [pytest.param(*case, id=f"slow, {name}", marks=pytest.mark.slow) for name, *case in slow_cases()],
)
def test_compiled_programs_grow_the_same_trees(plan: Plan, evaluator: tuple[float, float]) -> None:
    assert_same(plan, evaluator, "auto")


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.parametrize("points", [0.0, 0.4])
@pytest.mark.parametrize("kernels", ["gpu", pytest.param("auto", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("way", [jax.jit, lambda function: function], ids=["compiled", "called with NumPy's arrays"])
def test_programs_put_the_same_new_games_into_trees(points: float, kernels: str, way: Any) -> None:
    def restarted(kernels: Any) -> search.Tree:
        settings = SearchSettings(algorithm="gumbel", simulations=4, score_weight=points, kernels=kernels)
        first, second = roots(GO, BATCH), roots(GO, BATCH, seed=9)
        tree = search.plant(GO, settings, first)
        filled = {name: np.ones_like(getattr(tree, name)) for name in ("visits", "total", "value", "apart", "parent")}
        filled |= {"child": np.full_like(tree.child, 2), "logits": np.full_like(tree.logits, -1.5)}
        tree = replace(tree, **jax.tree.map(jnp.asarray, filled))
        return way(search.restart)(tree, jax.tree.map(np.asarray, second), np.arange(BATCH) % 3 == 1)

    plain, programs = (restarted(which) for which in ("plain", kernels))
    pairs = zip(*(jax.tree_util.tree_leaves_with_path(_comparable(tree)) for tree in (plain, programs)), strict=True)
    for (path, one), (_, other) in pairs:
        np.testing.assert_array_equal(one, other, err_msg=jax.tree_util.keystr(path))
    assert np.isneginf(plain.logits[1, 0]).all()
    assert (plain.logits[0] == -1.5).all()
