"""Rows through symmetries, all at once, against the games' own symmetries, one by one."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import games, nets
from tengen.data.format.rows import RowFormat, pack_planes, unpack_planes, widened
from tengen.train import symmetry
from tests.helpers.train_samples import random_rows

EVERY_TARGET = "tests.helpers.every_target:EveryTarget"  # tic-tac-toe
CASES: dict[str, dict[str, Any]] = {
    EVERY_TARGET: {},
    "connect_four": {},
    "othello": {},
    "hex": {"size": 4},
    "go": {"size": 5},
    "hironaka": {},
}


def test_no_game_is_forgotten() -> None:
    ships = {name for name in games.names() if games.ships(name) and len(games.make(name).symmetries) > 1}
    assert set(CASES) - {EVERY_TARGET} | {"tic_tac_toe"} == ships


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in ("othello", "hex") else ()) for name in CASES]
)
def test_each_symmetry_against_the_game(name: str) -> None:
    game = games.make(name, **CASES[name])
    heads = nets.possible_heads(game)
    each = len(game.symmetries)
    # Every symmetry for both players.
    rows = random_rows(game, 2 * each, heads)
    rows["to_play"] = np.repeat([0, 1], each).astype(np.int8)
    rows["planes"] = unpack_planes(rows["planes"], game.planes_shape)
    chosen = np.tile(np.arange(each), 2)
    tables = symmetry.tables(game)
    given = {key: jnp.asarray(value) for key, value in rows.items()}
    found = jax.jit(lambda rows, chosen: symmetry.apply(tables, rows, chosen))(given, jnp.asarray(chosen))
    for row, number in enumerate(chosen):
        one = game.symmetries[number]
        mover = int(rows["to_play"][row])
        expected = {
            "planes": one.board(given["planes"][row]),
            "scalars": one.scalars(given["scalars"][row]),
            "policy": given["policy"][row][one.inverse[mover]],
            "opponent_policy": given["opponent_policy"][row][one.inverse[1 - mover]],
        }
        for target in game.extra_targets:
            if target.per == "point":
                expected[target.name] = one.board(given[target.name][row])
            elif target.per == "action":
                expected[target.name] = given[target.name][row][one.inverse[mover]]
        for key, value in given.items():
            wanted = expected.get(key, value[row])
            np.testing.assert_array_equal(found[key][row], wanted, err_msg=f"{key}: {one.name}, player {mover}")
    assert {key: value.dtype for key, value in found.items()} == {key: value.dtype for key, value in given.items()}


def test_symmetries_are_drawn_evenly_and_by_the_row() -> None:
    game = games.make("tic_tac_toe")
    count = 4000
    rows = {key: jnp.asarray(value) for key, value in random_rows(game, count).items()}
    rows["planes"] = jnp.zeros((count, *game.planes_shape), bool)
    rows["policy"] = jnp.broadcast_to(jnp.arange(9, dtype=jnp.float16), (count, 9))
    tables = symmetry.tables(game)
    moved = np.asarray(jax.jit(lambda key: symmetry.apply_random(tables, rows, key)["policy"])(jax.random.key(0)))
    kinds, times = np.unique(moved, axis=0, return_counts=True)
    assert len(kinds) == 8
    assert times.min() > 400
    assert times.max() < 600


@pytest.mark.slow
def test_smaller_boards_turn_in_their_corner() -> None:
    """A small board turned and then put into the corner is the same as one turned there."""
    large, *smaller = (games.make("go", size=size) for size in (5, 3, 4))
    heads = nets.possible_heads(large)
    tables, each = symmetry.tables(large, smaller), len(large.symmetries)
    chosen = jnp.arange(each)
    for game in (large, *smaller):
        form, wide = RowFormat.of(game, heads), RowFormat.of(large, heads)
        rows = {key: jnp.asarray(value) for key, value in random_rows(game, each, heads).items()}

        def turned(rows: Any, form: Any, tables: Any) -> Any:
            planes = unpack_planes(rows["planes"], form.planes_shape)
            found = symmetry.apply(tables, {**rows, "planes": planes}, chosen)
            return {**found, "planes": pack_planes(found["planes"])}

        expected = widened(turned(rows, form, symmetry.tables(game)), form, wide)
        found = turned(widened(rows, form, wide), wide, tables)
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name], err_msg=f"{game.options}: {name}")
