"""Blocks keep what is added, in order, and nothing else."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.data.format.rows import RowFormat, blank
from tengen.data.records.moves import start_of
from tengen.selfplay.collector import on_host
from tengen.selfplay.history import Finished, FinishedGames, add, empty
from tests.helpers.game_recording import jit, make

FORM = RowFormat((2, 2, 3), 2, 4, ("opponent_policy",))
ENDED, MOVES, ROWS, GAMES = 3, 5, 40, 9
EXTRA = {"komi": jax.ShapeDtypeStruct((), jnp.float32)}


def ended(rng: np.random.Generator, others: float) -> FinishedGames:
    """Games full of random numbers, some of them not real; `others` is the share of rows that are only written."""
    real = rng.random(ENDED) < 0.6
    learned = rng.random(ENDED * MOVES) < 0.5
    rows = {
        name: rng.integers(0, 100, (ENDED * MOVES, *field.shape)).astype(field.dtype)
        for name, field in FORM.fields.items()
    }
    return FinishedGames(
        rows=rows,
        kept=np.repeat(real, MOVES) & learned,
        others=np.repeat(real, MOVES) & ~learned & (rng.random(ENDED * MOVES) < others),
        number=rng.integers(0, 1000, (ENDED, 2)).astype(np.uint32),
        seed=rng.integers(0, 1000, (ENDED, 2)).astype(np.uint32),
        action=rng.integers(0, 4, (ENDED, MOVES)).astype(np.int16),
        value=rng.random((ENDED, MOVES)).astype(np.float16),
        length=rng.integers(1, MOVES, ENDED).astype(np.int32),
        opening=rng.integers(0, 2, ENDED).astype(np.int32),
        result=rng.random(ENDED).astype(np.float32),
        extra={"komi": rng.random(ENDED).astype(np.float32)},
        real=real,
    )


def filled(seed: int, times: int, others: float = 0.0) -> tuple[Finished, list[FinishedGames]]:
    rng = np.random.default_rng(seed)
    given = [ended(rng, others) for _ in range(times)]
    finished, program = empty(FORM, ROWS, GAMES, MOVES, EXTRA), jit(add)
    for some in given:
        finished = program(finished, some)
    return finished, given


def test_what_is_added_comes_out_in_order() -> None:
    for seed in range(5):
        finished, given = filled(seed, 3)
        found = on_host(finished)
        for name in ("number", "seed", "action", "value", "length", "opening", "result"):
            expected = np.concatenate([getattr(some, name)[some.real] for some in given])
            np.testing.assert_array_equal(getattr(found, name), expected)
        komi = np.concatenate([some.extra["komi"][some.real] for some in given])
        np.testing.assert_array_equal(found.extra["komi"], komi)
        for name in FORM.fields:
            rows = np.concatenate([some.rows[name][some.kept] for some in given])
            np.testing.assert_array_equal(found.rows[name], rows)
            assert found.rows[name].dtype == rows.dtype
        assert found.games_count == sum(some.real.sum() for some in given)
        assert found.rows_count == sum(some.kept.sum() for some in given)


def test_rows_that_are_only_written_follow_the_others() -> None:
    for seed in range(5):
        finished, given = filled(seed, 3, others=0.8)
        found = on_host(finished)
        for name in FORM.fields:
            learned = np.concatenate([some.rows[name][some.kept] for some in given])
            written = np.concatenate([some.rows[name][some.others] for some in given])[::-1]
            np.testing.assert_array_equal(found.rows[name], np.concatenate([learned, written]))
            np.testing.assert_array_equal(np.asarray(finished.rows[name])[: len(learned)], learned)
        assert found.others_count == sum(some.others.sum() for some in given) > 0
        assert found.rows_count == sum(some.kept.sum() for some in given)
        left = ROWS - int(found.rows_count) - int(found.others_count)
        assert finished.room(left, 0)
        assert not finished.room(left + 1, 0)


def test_what_lies_behind_the_last_is_as_it_was() -> None:
    finished, _ = filled(0, 2)
    rows, fresh = int(finished.rows_count), blank(FORM, ROWS)
    assert all((np.asarray(finished.rows[name])[rows:] == fresh[name][rows:]).all() for name in fresh)
    assert (np.asarray(finished.action)[int(finished.games_count) :] == -1).all()


def test_nothing_comes_out_of_an_empty_block() -> None:
    found: Any = on_host(empty(FORM, ROWS, GAMES, MOVES, EXTRA))
    assert found.rows["policy"].shape == (0, 4)
    assert found.action.shape == (0, MOVES)
    assert (found.rows_count, found.games_count) == (0, 0)


def test_room_is_for_rows_and_for_games() -> None:
    finished = empty(FORM, ROWS, GAMES, MOVES, EXTRA)
    assert finished.room(ROWS, GAMES)
    assert not finished.room(ROWS + 1, 1)
    assert not finished.room(1, GAMES + 1)
    some, _ = filled(0, 2)
    rows, games = int(some.rows_count), int(some.games_count)
    assert some.room(ROWS - rows, GAMES - games)
    assert not some.room(ROWS - rows + 1, 0)
    assert not some.room(0, GAMES - games + 1)


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four", "othello", "hex", "go", "pgx:tic_tac_toe"])
def test_most_games_have_one_start(name: str) -> None:
    assert start_of(make(name), np.array([3, 4], np.uint32)) is None


def test_a_random_start_is_known_by_its_seed() -> None:
    game = make("hironaka")
    for seed in ([3, 4], [3, 5]):
        data = np.array(seed, np.uint32)
        assert start_of(game, data) == game.render(game.init(jax.random.wrap_key_data(data)))
    assert start_of(game, np.array([3, 4], np.uint32)) != start_of(game, np.array([3, 5], np.uint32))
    assert start_of(game, jax.random.key_data(jax.random.key(0))) is None
