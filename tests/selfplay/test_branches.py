"""Some games begin where others were surprised, and are games like any others from there on."""

import jax
import jax.numpy as jnp
import numpy as np

from tengen.selfplay import branches as branching
from tests.helpers.game_recording import make
from tests.helpers.selfplay_plans import CALLS, CERTAIN, GO, PHASES, by_game, played

GAMES = 20_000


def test_positions_are_drawn_by_their_weights() -> None:
    game = make("tic_tac_toe")
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), GAMES))
    found = branching.none(game, GAMES)
    weights = (0.0, 1.0, 0.0, 3.0, 4.0, 0.0)
    for ply, weight in enumerate(weights):
        key = jax.random.key(ply)
        found = branching.consider(found, states, jnp.full(GAMES, ply), jnp.full(GAMES, weight), key)
    shares = np.bincount(np.asarray(found.ply), minlength=len(weights)) / GAMES
    np.testing.assert_allclose(shares, np.array(weights) / sum(weights), atol=0.015)
    assert (shares[np.array(weights) == 0] == 0).all()


def test_games_branch_off_games_that_ended_before_and_only_their_own_moves_give_rows() -> None:
    games = played(GO, CALLS, PHASES)
    rows, found = by_game(games), games.everything
    own = GO.settings.opening_moves
    branched = np.nonzero(found.opening > own)[0]
    assert len(branched) > games.games / 10
    for place in branched:
        number, opening = int(found.number[place, 1]), int(found.opening[place])
        before = found.number[:, 1] < number
        komi = found.extra["komi"] == found.extra["komi"][place]
        same = (found.action[:, :opening] == found.action[place, :opening]).all(1) & (found.length > opening)
        assert (before & komi & same).any()
        # The position was one with a full search, whose policy is known.
        parents = found.number[before & komi & same, 1].tolist()
        assert any(rows[parent][opening]["policy_weight"] > 0 for parent in parents if opening in rows[parent])
        assert min(rows[number], default=opening) >= opening
        assert (found.value[place, :opening] == 0).all()
    # Many of them go on in another way.
    lengths = found.length[branched], found.opening[branched]
    assert (lengths[0] > lengths[1]).all()


def test_without_a_share_all_games_begin_anew() -> None:
    games = played(CERTAIN, CALLS, PHASES)
    assert all(actor.branches is None for actor in games.actors)
