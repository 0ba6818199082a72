"""Planting trees: how much memory they take, and what is refused."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import search
from tengen.config.settings.search import SearchSettings
from tengen.errors import OptionError
from tengen.nets.outputs import Evaluation
from tengen.search.tree import bytes_needed, plant
from tests.helpers.game_recording import jit, make
from tests.helpers.search_plans import TIC_TAC_TOE
from tests.helpers.search_positions import after, roots, stacked

SETTINGS = SearchSettings(simulations=10)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("tic_tac_toe", {}),
        ("hex", {"size": 4}),
        ("othello", {}),
        ("go", {"size": 5, "ko": "positional"}),
        ("go", {"size": 5, "ko": "simple"}),
        ("hironaka", {"dimension": 3}),
    ],
)
@pytest.mark.parametrize("slots", [None, 7])
def test_bytes_needed_are_those_of_the_arrays(name: str, options: dict[str, Any], slots: int | None) -> None:
    game = make(name, **options)
    keys = jax.random.split(jax.random.key(0), 3)
    tree = jax.eval_shape(lambda keys: plant(game, SETTINGS, jax.vmap(game.init)(keys), slots), keys)
    arrays = jax.tree.leaves(tree)
    assert bytes_needed(game, SETTINGS, 3, slots) == sum(array.size * array.dtype.itemsize for array in arrays)


def test_a_thousand_games_of_go_with_800_simulations_fit_into_8_gigabytes() -> None:
    game = make("go", size=19)
    for algorithm in ("gumbel", "puct"):
        assert bytes_needed(game, SearchSettings(algorithm=algorithm, simulations=800), 1024, 801) <= 8e9


def test_trees_that_do_not_fit_are_refused_with_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    game, states = TIC_TAC_TOE, roots(TIC_TAC_TOE, 6)
    needed = bytes_needed(game, SETTINGS, 6)

    def with_memory(limit: int | None) -> None:
        stats = None if limit is None else {"bytes_limit": limit}
        monkeypatch.setattr(jax, "local_devices", lambda *_: [SimpleNamespace(memory_stats=lambda: stats)])

    def planted() -> None:
        jax.eval_shape(lambda states: plant(game, SETTINGS, states), states)

    for enough in (None, needed):  # None: a device that does not say, so the machine's memory counts
        with_memory(enough)
        planted()
    with_memory(needed - 1)
    with pytest.raises(OptionError, match=r"6 games need .*, the device has .*fewer games or simulations"):
        planted()


def test_more_nodes_than_slot_numbers_are_refused() -> None:
    with pytest.raises(OptionError, match="fewer simulations"):
        jax.eval_shape(partial(plant, TIC_TAC_TOE, SearchSettings(simulations=20_000)), roots(TIC_TAC_TOE, 6))


def test_a_planted_tree_holds_its_positions_and_nothing_else() -> None:
    states = roots(TIC_TAC_TOE, 6)
    tree = jit(lambda states: plant(TIC_TAC_TOE, SETTINGS, states, slots=5))(states)
    kept = jit(lambda tree: tree.states(tree.root))(tree)
    for planted, given in zip(jax.tree.leaves(kept), jax.tree.leaves(states), strict=True):
        np.testing.assert_array_equal(planted, given)
    assert not np.asarray(tree.visits).any()
    assert (np.asarray(tree.used) == 1).all()
    assert (np.asarray(tree.child) == -1).all()


@pytest.mark.parametrize("wrong", [{"algorithm": "alphazero"}, {"simulations": -3}, {"kernels": "pallas"}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(wrong))):
        plant(TIC_TAC_TOE, SearchSettings(**wrong), roots(TIC_TAC_TOE, 6))


def test_a_tree_without_room_for_its_root_is_refused() -> None:
    with pytest.raises(OptionError, match="0 nodes"):
        plant(TIC_TAC_TOE, SETTINGS, roots(TIC_TAC_TOE, 6), slots=0)


@pytest.mark.parametrize("leaves", [1, 4])
def test_leaves_without_room_count_with_their_own_results(leaves: int) -> None:
    """X wins at once with one move, which is all that the prior likes; the tree has room for its root only."""
    settings = SearchSettings(
        algorithm="puct", simulations=8, leaves=leaves, noise_share=0.0, forced_playouts=0.0, virtual_loss=0.0
    )
    winning = 6  # X has the two others of the first column

    def sure(observation: Any) -> Evaluation:
        batch = len(observation.planes)
        return Evaluation(jnp.zeros((batch, 9)).at[:, winning].set(20.0), jnp.zeros(batch))

    def value(states: Any) -> Any:
        tree = search.plant(TIC_TAC_TOE, settings, states, slots=1)
        tree = search.begin(tree, jax.random.key(0), jnp.full(1, 8), jnp.ones(1, bool))
        return search.summarise(search.finish(sure, tree), jax.random.key(0)).value

    assert jit(value)(stacked([after(TIC_TAC_TOE, [0, 1, 3, 4])]))[0] == pytest.approx(8 / 9)
