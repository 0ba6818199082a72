"""Every row says what a slow replay of its game says."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.data.format import sanity
from tengen.data.format.katago_writing import FUTURES
from tengen.data.format.rows import RowFormat, check, pack_planes
from tengen.data.records import text
from tengen.data.records.moves import start_of
from tengen.data.records.records import Record
from tengen.games.targets import Target
from tengen.selfplay.history import Finished, _values, _weight, blank, make_rows
from tests.helpers.game_recording import make
from tests.helpers.replayed_games import Replay, replays
from tests.helpers.selfplay_plans import (
    CALLS,
    CERTAIN,
    CROWDED,
    FAST,
    GO,
    OTHELLO,
    PHASES,
    SLOW,
    Played,
    by_game,
    played,
)

QUICK = ("tic_tac_toe",)
LONG = [pytest.param(name, marks=pytest.mark.slow) for name in (FAST | SLOW) if name not in QUICK]


@pytest.fixture(params=[*QUICK, *LONG], scope="module")
def games(request: pytest.FixtureRequest) -> Played:
    found = played((FAST | SLOW)[request.param], CALLS * (2 if request.param in SLOW else 1), PHASES)
    assert found.games >= 20
    return found


def test_the_numbers_in_rows_can_be_true(games: Played) -> None:
    targets = (target.name for target in games.plan.game.extra_targets)
    form = RowFormat.of(games.plan.game, ("opponent_policy", *targets))
    for call in games.calls:
        assert check(form, call.rows) == call.rows_count
        assert list(sanity.problems(form, call.rows)) == []


def test_games_follow_the_rules_to_their_end(games: Played) -> None:
    found = games.everything
    for number, replay in enumerate(replays(games)):
        length, opening = int(found.length[number]), int(found.opening[number])
        actions = found.action[number]
        assert 0 <= opening < length
        assert (actions[length:] == -1).all()
        assert all(replay.legal[ply, action] for ply, action in enumerate(actions[:length]))
        assert not replay.over[:length].any()
        assert replay.over[length]
        assert found.result[number] == replay.returns[length, 0]
        assert (found.value[number][:opening] == 0).all()
        assert (abs(found.value[number]) <= 1).all()


def test_games_can_be_written_down_and_read_again(games: Played) -> None:
    found, game = games.everything, games.plan.game
    if game.name == "double_move":
        return  # which is no game that others know
    for number in range(min(games.games, 40)):
        length, start = int(found.length[number]), start_of(game, found.seed[number])
        written = Record.of(game, found.action[number, :length], start=start, komi=_komi(found, number))
        (again,) = text.read(text.write([written]))
        assert again == written


def _komi(found: Finished, number: int) -> float | None:
    return float(found.extra["komi"][number]) if "komi" in found.extra else None


def test_rows_hold_what_the_player_saw_and_how_it_ended(games: Played) -> None:
    shape, rows = games.plan.game.planes_shape, by_game(games)
    for number, replay in enumerate(replays(games)):
        averaged = _averaged(games.everything.value[number], replay, games.plan.settings.value_horizon)
        for ply, row in rows[int(games.everything.number[number, 1])].items():
            mover = replay.to_play[ply]
            planes = np.unpackbits(row["planes"])[: np.prod(shape)].reshape(shape)
            assert (planes == replay.planes[ply]).all()
            np.testing.assert_allclose(row["scalars"], replay.scalars[ply], rtol=1e-6)
            assert row["to_play"] == mover
            assert row["moves_left"] == replay.length - ply
            win, draw, loss = row["outcome"].tolist()
            np.testing.assert_allclose(win - loss, replay.returns[replay.length, mover], atol=1e-6)
            assert min(win, loss) == 0
            np.testing.assert_allclose(win + draw + loss, 1, atol=1e-6)
            np.testing.assert_allclose(row["search_value"], averaged[ply], atol=1e-6)
            assert not row["policy"][~replay.legal[ply]].any()
            _check_final_targets(replay, row, 1 - 2 * int(mover))


def _averaged(values: np.ndarray, replay: Replay, horizon: float) -> list[float]:
    """The search value of each ply, from the end on: a share of its own and the rest of the next one."""
    found: list[float] = []
    later, player = float(replay.returns[replay.length, 0]), 0
    for ply in reversed(range(replay.length)):
        mover = int(replay.to_play[ply])
        later = (float(values[ply]) + horizon * (later if mover == player else -later)) / (1 + horizon)
        player = mover
        found.append(later)
    return found[::-1]


def _check_final_targets(replay: Replay, row: dict[str, Any], sign: int) -> None:
    for name, target in replay.final.items():
        np.testing.assert_array_equal(row[name], sign * target)


def test_rows_are_weighed_by_their_searches(games: Played) -> None:
    settings, found, rows = games.plan.settings, games.everything, by_game(games)
    share = []
    for number, length, opening in zip(found.number[:, 1], found.length, found.opening, strict=True):
        plies = rows[int(number)]
        searched = set(range(opening, length))
        if settings.cheap_weight > 0 or settings.full_share == 1:
            assert set(plies) == searched
        assert set(plies) <= searched
        for row in plies.values():
            assert row["policy_weight"] in (0, 1)
            if not (row["policy_weight"] and settings.surprise_share):
                assert row["weight"] == (1 if row["policy_weight"] else settings.cheap_weight)
            assert bool(row["policy"].any()) == bool(row["policy_weight"])
        weights = [row["weight"] for row in plies.values() if row["policy_weight"]]
        if weights:
            np.testing.assert_allclose(np.mean(weights), 1, rtol=1e-4)
            assert min(weights) >= 1 - settings.surprise_share - 1e-6
        share.append((sum(row["policy_weight"] for row in plies.values()), len(searched)))
    full, all_searches = np.sum(share, 0)
    expected, slack = settings.full_share, 4 * (settings.full_share * (1 - settings.full_share) / all_searches) ** 0.5
    assert abs(full / all_searches - expected) <= slack
    assert set(rows) <= set(found.number[:, 1].tolist())


def test_the_reply_is_the_opponents_if_it_was_searched_in_full(games: Played) -> None:
    rows, same_again, replied = by_game(games), 0, 0
    for number, replay in zip(games.everything.number[:, 1], replays(games), strict=True):
        plies = rows[int(number)]
        for ply, row in plies.items():
            next_row = plies.get(ply + 1)
            other = ply + 1 < replay.length and replay.to_play[ply + 1] != replay.to_play[ply]
            same_again += ply + 1 < replay.length and not other
            if next_row is not None and next_row["policy_weight"] and other:
                replied += 1
                assert row["opponent_weight"] == 1
                assert (row["opponent_policy"] == next_row["policy"]).all()
            else:
                assert row["opponent_weight"] == 0
                assert not row["opponent_policy"].any()
    assert replied > 0
    assert (same_again > 0) == (games.plan.game.name == "double_move")


@pytest.mark.slow
def test_go_games_end_in_both_ways_and_with_their_own_komi() -> None:
    games = played(GO, CALLS, PHASES)
    limit = games.everything.length == GO.game.max_moves
    assert limit.any()
    assert not limit.all()
    komi = games.everything.extra["komi"]
    assert len(set(komi.tolist())) > 5
    for replay, score in zip(replays(games), games.everything.extra["score"], strict=True):
        assert replay.final["score"] == score


@pytest.mark.slow
def test_othello_players_pass() -> None:
    found = played(OTHELLO, 2 * CALLS, PHASES).everything
    assert (found.action == OTHELLO.game.num_actions - 1).any()


@pytest.mark.slow
def test_the_move_made_is_one_the_search_looked_at() -> None:
    games = played(CROWDED, CALLS, PHASES)  # PUCT draws its moves from the visits, which are its policy
    rows, found = by_game(games), games.everything
    for number, actions in zip(found.number[:, 1], found.action, strict=True):
        for ply, row in rows[int(number)].items():
            assert row["policy"][actions[ply]] > 0 or not row["policy_weight"]


def test_policies_are_shares_of_the_visits_that_were_paid_for() -> None:
    rows = played(CERTAIN, CALLS, PHASES).everything.rows
    counts = rows["policy"][rows["policy_weight"] > 0].astype(np.float32) * (CERTAIN.searching.simulations - 1)
    assert len(counts) > 50
    np.testing.assert_allclose(counts, counts.round(), atol=0.01)  # the first simulation is the root's
    assert (counts.round().sum(1) == CERTAIN.searching.simulations - 1).all()


@pytest.mark.parametrize(
    ("sides", "value", "expected"),
    [
        ("opposite", [[1, 2], [3, 4]], [[[1, 2], [-1, -2], [-1, -2]], [[3, 4], [3, 4], [-3, -4]]]),
        ("same", [[1, 2], [3, 4]], [[[1, 2]] * 3, [[3, 4]] * 3]),
        ("each", [[[1, 2], [5, 6]], [[3, 4], [7, 8]]], [[[1, 2], [5, 6], [5, 6]], [[3, 4], [3, 4], [7, 8]]]),
    ],
)
def test_a_target_is_seen_by_the_player_of_each_move(sides: Any, value: list, expected: list) -> None:
    player = np.array([[0, 1, 1], [0, 0, 1]], np.int8)
    for dtype in (np.int8, np.float32):
        found = Target("two", "action", sides=sides).seen_by(jnp.asarray(value, dtype), jnp.asarray(player))
        assert found.dtype == dtype
        assert np.asarray(found).tolist() == expected


@pytest.mark.slow
def test_rows_for_katago_hold_the_stones_of_later_turns() -> None:
    game, moves = make("tic_tac_toe"), [4, 0, 1, 7, 3, 5, 2, 6, 8]
    state, planes, boards = game.init(jax.random.key(0)), [], []
    for move in [*moves, None]:
        seen = np.asarray(game.observe(state).planes)
        sign = 1 - 2 * (len(boards) % 2)
        boards.append(sign * (seen[..., 1].astype(int) - seen[..., 2]))
        if move is not None:
            planes.append(pack_planes(seen))
            state = game.step(state, jnp.int32(move))
    form = replace(RowFormat.of(game), extras=tuple(f"{name}:point:int8" for name in FUTURES))
    history = blank(form, 1, game.max_moves)._replace(
        ply=jnp.array([9]),
        player=jnp.arange(9, dtype=jnp.int8)[None] % 2,
        searched=jnp.ones((1, 9), bool),
        full=jnp.ones((1, 9), bool),
        planes=jnp.asarray(np.stack(planes))[None],
    )
    last = jax.tree.map(lambda leaf: leaf[None], state)
    rows, kept, _ = make_rows(game, form, history, last, jnp.zeros((1, 2), jnp.uint32), 0.0)
    assert bool(kept.all())
    for ply in range(9):
        sign = 1 - 2 * (ply % 2)
        np.testing.assert_array_equal(rows["stones_in_8"][ply], sign * boards[min(ply + 8, 9)])
        np.testing.assert_array_equal(rows["stones_in_32"][ply], sign * boards[9])


def test_surprise_shifts_weight_between_the_positions_of_a_game() -> None:
    surprise = np.array([[0.1, 0.0, 0.3, 9.0], [0.0, 0.0, 0.0, 0.0]], np.float16)
    full = np.array([[True, True, True, False], [True, True, False, False]])
    weights = np.asarray(_weight(surprise, full, 0.5))
    np.testing.assert_allclose(weights[0, :3], [0.5 + 0.5 * 0.75, 0.5, 0.5 + 0.5 * 2.25], rtol=1e-3)
    np.testing.assert_allclose(weights[1, :2], 1, err_msg="nothing was surprising")
    np.testing.assert_allclose(np.asarray(_weight(surprise, full, 0.0))[:, :2], 1)


def test_values_of_later_searches_are_averaged_until_the_result() -> None:
    value = np.array([[0.5, -0.2, 0.4, 0.9], [0.1, 0.3, 7.0, 7.0]], np.float32)
    result, length = np.array([[1.0] * 4, [-1.0] * 4], np.float32), np.array([4, 2], np.int32)
    np.testing.assert_array_equal(_values(value, result, length, 0.0)[0], value[0])
    found = np.asarray(_values(value, result, length, 3.0))
    for game in range(2):
        expected = result[game, 0]
        for ply in reversed(range(length[game])):
            expected = 0.25 * value[game, ply] + 0.75 * expected
            np.testing.assert_allclose(found[game, ply], expected, rtol=1e-5)
