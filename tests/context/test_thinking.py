"""What a search asks for is what it needs to know, and nothing else."""

from typing import Any

import jax
import numpy as np
import pytest

from tengen import search
from tengen.config.settings.search import SearchSettings
from tengen.context.thinking import TreeSearch
from tengen.nets.outputs import Evaluation
from tests.helpers import game_recording
from tests.helpers.contexts import CERTAIN, TIC_TAC_TOE
from tests.helpers.search_positions import hashed, roots

SLOTS = 4  # so few that leaves find no room


@pytest.mark.parametrize("leaves", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_rows_that_are_not_wanted_change_nothing(leaves: int) -> None:
    thinking = TreeSearch(TIC_TAC_TOE, SearchSettings(algorithm="puct", simulations=12, leaves=leaves, **CERTAIN), True)
    states, key, games = roots(TIC_TAC_TOE, 8), jax.random.key(0), np.ones(8, bool)

    def planted(states: Any) -> Any:
        return thinking.begin(search.plant(thinking.game, thinking.settings, states, SLOTS), key, games)

    ask, answer = game_recording.jit(thinking.ask), game_recording.jit(thinking.answer)
    tree, turns, idle, full, twins = game_recording.jit(planted)(states), 0, 0, False, False
    while bool(search.unfinished(tree).any()):
        query = jax.tree.map(np.asarray, ask(tree))
        policy, value = (np.array(x) for x in hashed(query.observation, thinking.game.num_actions, 8.0, 1.0)[:2])
        spoiled = policy.copy(), value.copy()
        spoiled[0][~query.wanted], spoiled[1][~query.wanted] = -7, 1000
        after, other = (answer(tree, query.notes, Evaluation(*said)) for said in ((policy, value), spoiled))
        for name in ("visits", "total", "child", "done"):
            assert np.array_equal(getattr(after, name), getattr(other, name)), name
        assert not (query.wanted & query.notes.over).any()
        idle += int((~query.wanted & query.notes.path.active.reshape(-1)).sum())
        full |= bool((query.wanted & (query.notes.path.node.reshape(-1) < 0)).any())
        twins |= bool((query.wanted & ~query.notes.path.fresh.reshape(-1)).any())
        tree, turns = after, turns + 1
    assert full
    assert twins or leaves == 1  # walks that met where there was no room
    assert idle > 0
    assert turns >= 12 // leaves
