"""A tree as text and as plain data."""

import json
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tengen import search
from tengen.config.settings.search import SearchSettings
from tengen.nets.outputs import Evaluation
from tengen.search import dump
from tengen.search.tree import Tree
from tests.helpers.game_recording import jit
from tests.helpers.search_plans import NO_FRILLS, TIC_TAC_TOE
from tests.helpers.search_positions import after, stacked

# X O .    X wins with c3, the last move of the first column; every other move lets O win or draw.
# X O .
# . . .
POSITION = [0, 1, 3, 4]


@cache
def searched() -> Tree:
    settings = SearchSettings(algorithm="puct", simulations=30, **NO_FRILLS)

    def uniform(observation: Any) -> Evaluation:
        batch = len(observation.planes)
        return Evaluation(jnp.zeros((batch, 9)), jnp.zeros(batch))

    def run(states: Any) -> Tree:
        tree = search.begin(
            search.plant(TIC_TAC_TOE, settings, states), jax.random.key(0), jnp.full(2, 30), jnp.ones(2, bool)
        )
        return search.finish(uniform, tree)

    return jit(run)(stacked([after(TIC_TAC_TOE, []), after(TIC_TAC_TOE, POSITION)]))


def check(node: dict[str, Any], depth: int) -> None:
    """What must hold at every node."""
    visits = [child["visits"] for child in node["children"]]
    assert visits == sorted(visits, reverse=True)
    if node["children"]:
        assert sum(visits) == node["visits"] - 1
        assert node["line"][0] == node["children"][0]["move"]
        assert node["line"][1:] == node["children"][0]["line"]
        assert depth > 0
    for child in node["children"]:
        check(child, depth - 1)


def test_the_winning_move_stands_first_with_its_value_for_the_one_who_makes_it() -> None:
    found = dump.as_dict(searched(), game=1, depth=3)
    best = found["children"][0]
    assert best["over"]
    assert best["q"] == best["value"] == 1
    assert found["line"] == [best["move"]]
    assert found["visits"] == 31
    assert found["q"] > 0.5
    check(found, 3)
    assert json.loads(json.dumps(found)) == found


def test_depth_and_least_visits_leave_out() -> None:
    tree = searched()
    assert dump.as_dict(tree, depth=0)["children"] == []
    few = dump.as_dict(tree, game=1, depth=2, least_visits=3)
    assert all(child["visits"] >= 3 for child in few["children"])
    assert len(few["children"]) < len(dump.as_dict(tree, game=1, depth=2)["children"])


def test_priors_are_those_of_the_evaluation() -> None:
    children = dump.as_dict(searched(), game=1, depth=1)["children"]
    np.testing.assert_allclose([child["prior"] for child in children], 1 / 5, rtol=1e-3)


def test_the_text_begins_with_the_position_and_the_line() -> None:
    text = dump.as_text(searched(), game=1, depth=1)
    position = after(TIC_TAC_TOE, POSITION).state
    assert text.startswith(TIC_TAC_TOE.render(position))
    best = dump.as_dict(searched(), game=1, depth=1)["children"][0]
    assert f"expected: {best['move']}\n" in text
    root, first = text.splitlines()[-6:-4]
    assert root.startswith("root       31 visits")
    assert first.startswith(f"  {best['move']}")
    assert "q +1.0000" in first
    assert first.endswith("over")


def test_a_tree_in_which_nothing_was_searched() -> None:
    states = stacked([after(TIC_TAC_TOE, [])])
    tree = search.plant(TIC_TAC_TOE, SearchSettings(), states, slots=3)
    assert "nothing searched yet" in dump.as_text(tree)
    assert dump.as_dict(tree)["q"] is None
