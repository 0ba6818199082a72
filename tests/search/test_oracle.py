"""The search against the slow one in `oracles.search`: the whole tree after every simulation."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tengen.config.settings.search import SearchSettings
from tests.helpers.game_recording import make
from tests.helpers.recorded_search import BATCH, CHOSEN, MOVES, Plan, play
from tests.helpers.search_lockstep import compare
from tests.helpers.search_plans import (
    ALL_FRILLS,
    FULL_PUCT,
    GUMBEL,
    LEAFY_GUMBEL,
    LEAFY_PUCT,
    NO_FRILLS,
    PUCT,
    STRANGE_GUMBEL,
    TIC_TAC_TOE,
)
from tests.helpers.search_positions import DOUBLE_MOVE, roots

SMOOTH, SHARP, UNIFORM = (2.0, 1.0), (8.0, 0.7), (0.0, 0.0)  # evaluators: sharpness of the priors, size of the values
HIRONAKA = make("hironaka", dimension=3, max_moves=8)
CASES = {
    "puct": (PUCT, SMOOTH),
    "puct, sharp": (PUCT, SHARP),
    "puct, all options": (FULL_PUCT, SMOOTH),
    "puct, all options, sharp": (FULL_PUCT, SHARP),
    "puct, three leaves": (LEAFY_PUCT, SMOOTH),
    "puct, three leaves, sharp": (LEAFY_PUCT, SHARP),
    "gumbel": (GUMBEL, SMOOTH),
    "gumbel, sharp": (GUMBEL, SHARP),
    "gumbel, three leaves": (LEAFY_GUMBEL, SMOOTH),
    "gumbel, hironaka": (Plan(HIRONAKA, SearchSettings(algorithm="gumbel", simulations=20)), SMOOTH),
}
RARE = (
    "puct, three leaves",
    "puct, three leaves, sharp",
    "gumbel, three leaves",
    "gumbel, hironaka",
    "puct",
    "puct, sharp",
)


def slow_cases() -> Iterator[tuple[str, Plan, tuple[float, float]]]:
    def settings(algorithm: Any, **changed: Any) -> SearchSettings:
        return SearchSettings(algorithm=algorithm, simulations=40, **changed)

    options: list[tuple[str, dict[str, Any]]] = [
        ("puct", {}),
        ("gumbel", {}),
        *(("puct", NO_FRILLS | {key: value}) for key, value in ALL_FRILLS.items()),
        *(("gumbel", {key: value}) for key, value in STRANGE_GUMBEL.items()),
        *(("gumbel", {"considered": count}) for count in (1, 2, 3, 5, 9)),
        ("gumbel", {"considered": 9, "considered_visits": 6}),
        *(("puct", {"leaves": count}) for count in (2, 5, 16)),
        *(("gumbel", {"leaves": count}) for count in (2, 5, 16)),
        ("puct", {"leaves": 4, "virtual_loss": 0.0}),
        ("gumbel", {"leaves": 4, "virtual_loss": 0.3, "considered": 1}),
    ]
    for algorithm, changed in options:
        yield f"{algorithm}, {changed}", Plan(TIC_TAC_TOE, settings(algorithm, **changed)), SMOOTH
    for game in (
        DOUBLE_MOVE,
        make("connect_four"),
        make("othello"),
        make("hex", size=3, swap=True),
        make("go", size=4, ko="simple", max_moves=30),
        make("go", size=2, ko="positional", komi=0.5),
        make("hironaka", dimension=3, max_moves=12),
    ):
        for chosen in (settings("puct", **ALL_FRILLS), settings("gumbel", considered=4), settings("puct", leaves=3)):
            for evaluator in (SMOOTH, SHARP):
                yield (
                    f"{game.name}, {game.num_actions}, {chosen.algorithm}, {chosen.leaves}, {evaluator}",
                    Plan(game, chosen),
                    evaluator,
                )


@pytest.mark.parametrize(
    ("plan", "evaluator"),
    [pytest.param(*case, id=name, marks=pytest.mark.slow if name in RARE else ()) for name, case in CASES.items()]
    + [pytest.param(*case, id=f"slow, {name}", marks=pytest.mark.slow) for name, *case in slow_cases()],
)
def test_the_tree_is_the_oracles_after_every_simulation(plan: Plan, evaluator: tuple[float, float]) -> None:
    # Three searches with a move or none in between: fresh roots, reused ones, and the same root searched on.
    states = roots(plan.game, BATCH)
    budgets = np.full((MOVES, BATCH), plan.settings.simulations)
    budgets[1] -= np.arange(BATCH)
    begins, advances = np.ones((MOVES, BATCH), bool), np.ones((MOVES, BATCH), bool)
    advances[0, 3] = False
    advances[1, 4] = begins[2, 4] = False
    wishes = np.full((MOVES, BATCH), CHOSEN)
    wishes[0, 5] = wishes[1, 0] = 4  # moves that the search knows less about, or nothing
    recorded = play(plan, states, budgets, 0, begins, advances, wishes, evaluator=evaluator)
    compare(plan, states, recorded, begins, advances, evaluator)


def test_ties_go_to_the_first_move() -> None:
    states, every = roots(TIC_TAC_TOE, BATCH), np.ones((MOVES, BATCH), bool)
    noise = np.zeros((MOVES, BATCH, 9))
    for plan in (PUCT, GUMBEL):
        recorded = play(plan, states, noise=noise, evaluator=UNIFORM)
        compare(plan, states, recorded, every, every, UNIFORM)
