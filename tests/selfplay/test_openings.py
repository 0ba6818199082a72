"""New games differ, and none of them is over."""

from collections import Counter
from typing import Any

import jax
import numpy as np
import pytest

from tengen.config.settings.selfplay import SelfplaySettings
from tengen.games.core import Game
from tengen.selfplay.openings import PreparedGames, prepare
from tests.helpers.game_recording import ANY, jit, make, new, record

COUNT = 64
GO3 = make("go", size=3, komi=2.5, max_moves=16)


def prepared(game: Game, count: int, seed: int = 0, **settings: Any) -> PreparedGames:
    program = jit(lambda key: prepare(game, SelfplaySettings(**settings), count, key))
    return jax.tree.map(np.asarray, program(jax.random.key(seed)))


def check_replay(game: Game, openings: PreparedGames, starts: Any) -> None:
    """The moves lead from `starts` to the states."""
    width = openings.actions.shape[1]
    actions = np.full((game.max_moves + 2, COUNT), ANY, np.int32)
    actions[:width] = openings.actions.T
    again = record(game, starts, actions=actions)
    for k, length in enumerate(openings.length):
        played = openings.actions[k, :length]
        assert (played >= 0).all()
        assert (openings.actions[k, length:] == -1).all()
        assert all(again.legal[ply, k, action] for ply, action in enumerate(played))
        assert not again.over[length, k]
        state = jax.tree.map(lambda leaf: leaf[k], openings.states)
        assert all(jax.tree.leaves(jax.tree.map(np.array_equal, state, again.state(length, k))))


@pytest.mark.slow
def test_openings_are_games_that_somebody_began() -> None:
    openings = prepared(GO3, COUNT, opening_moves=4, komi_spread=2.0)
    starts = jax.tree.map(lambda leaf: np.stack([leaf] * COUNT), new(GO3))
    check_replay(GO3, openings, starts._replace(komi=openings.states.komi))
    assert set(openings.length.tolist()) == {0, 1, 2, 3, 4}
    # Moves are drawn anew for every game, and evenly.
    firsts = Counter(openings.actions[openings.length > 0, 0].tolist())
    assert len(firsts) >= 8


def test_an_opening_never_ends_the_game_however_long_it_should_be() -> None:
    game = make("tic_tac_toe")
    openings = prepared(game, COUNT, opening_moves=100)
    check_replay(game, openings, jax.tree.map(lambda leaf: np.stack([leaf] * COUNT), new(game)))
    assert openings.actions.shape == (COUNT, 8)
    assert openings.length.max() > 5


def test_lengths_are_spread_evenly() -> None:
    # No game of connect four is over after six moves, so none stops early.
    many = 4000
    lengths = prepared(make("connect_four"), many, opening_moves=6).length
    share = np.bincount(lengths, minlength=7) / many
    assert len(share) == 7
    np.testing.assert_allclose(share, 1 / 7, atol=5 * (1 / 7 * 6 / 7 / many) ** 0.5)


@pytest.mark.parametrize("most", [0, 1])
def test_few_moves_or_none(most: int) -> None:
    openings = prepared(make("tic_tac_toe"), COUNT, opening_moves=most)
    assert openings.actions.shape == (COUNT, most)
    assert set(openings.length.tolist()) == set(range(most + 1))


def test_komi_is_drawn_in_halves_around_the_games_own() -> None:
    many = 4000
    komi = prepared(GO3, many, opening_moves=0, komi_spread=2.0).states.komi / 2  # kept as halves
    assert set((2 * komi % 2).tolist()) == {0, 1}
    assert abs(komi.mean() - 2.5) < 5 * 2 / many**0.5
    assert abs(komi.std() - 2.0) < 0.15
    assert (prepared(GO3, COUNT, opening_moves=0, komi_spread=0.0).states.komi == 5).all()


def test_games_that_begin_at_random_begin_differently() -> None:
    game = make("hironaka", max_points=4, max_moves=12, rescale=False)
    openings = prepared(game, COUNT, opening_moves=0)
    assert len({start.tobytes() for start in openings.states.points}) > COUNT // 2
    again = jit(jax.vmap(lambda seed: game.init(jax.random.wrap_key_data(seed))))(openings.seed)
    np.testing.assert_array_equal(again.points, openings.states.points)


def test_openings_are_taken_in_a_circle() -> None:
    openings = prepared(GO3, COUNT, opening_moves=4, komi_spread=2.0)
    taken = openings.take(np.array([COUNT - 1, COUNT, 3 * COUNT + 5]))
    for name in ("actions", "length", "seed"):
        np.testing.assert_array_equal(getattr(taken, name), getattr(openings, name)[[COUNT - 1, 0, 5]])
