"""Matches against slow rules: every game is legal, complete, played by the right players and counted right."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from tengen.config.settings.match import MatchSettings
from tengen.errors import OptionError
from tengen.match import device_match as matches
from tengen.match import players
from tengen.match.device_match import Match, MatchLimits, play
from tengen.match.openings import openings
from tengen.match.players import Player
from tengen.match.results import MatchResult
from tengen.run import safe_exit
from tests.helpers.game_recording import make
from tests.helpers.match_seats import from_host, highest, lowest, moves_of, replay, seats
from tests.helpers.search_positions import DOUBLE_MOVE

GAMES = MatchSettings(games=24, opening_moves=2)
NO_LIMITS = MatchLimits()
EDGES = {"lowest": lambda legal: min(legal), "highest": lambda legal: max(legal)}


def edges(name: str, seed: int = 0, settings: MatchSettings = GAMES) -> Match:
    game = make(name)
    return play(game, lowest(game), highest(game), jax.random.key(seed), settings)


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four"])
def test_every_game_is_played_by_the_rules_and_by_the_right_player(name: str) -> None:
    match = edges(name)
    assert (match.game, match.a, match.b, match.opening_moves) == (name, "lowest", "highest", 2)
    for number in range(24):
        positions = replay(match, number)
        assert positions[-1].over
        for position, action in list(zip(positions, moves_of(match, number), strict=False))[2:]:
            assert not position.over
            legal = [a for a, allowed in enumerate(position.legal_actions()) if allowed]
            assert action == EDGES[seats(match, number)[position.to_play]](legal)
        returns = dict(zip(seats(match, number), positions[-1].returns(), strict=True))
        assert match.results[number] == returns["lowest"]


def test_counts() -> None:
    match = edges("tic_tac_toe")
    results = match.results.tolist()
    counts = [results.count(r) for r in (1.0, 0.0, -1.0)]
    assert match.result == MatchResult("lowest", "highest", *counts)
    assert str(match).startswith("lowest - highest: ")
    assert "illegal" not in str(match)


def test_pairs_share_their_opening_and_no_game_comes_twice() -> None:
    match = edges("connect_four")
    openings = [tuple(moves_of(match, number)[:2]) for number in range(24)]
    assert openings[0::2] == openings[1::2]
    assert len(set(openings)) == 12
    for half in (0, 1):
        assert len({tuple(moves_of(match, number)) for number in range(half, 24, 2)}) == 12


def test_the_key_decides() -> None:
    one, same, other = edges("tic_tac_toe"), edges("tic_tac_toe"), edges("tic_tac_toe", seed=1)
    np.testing.assert_array_equal(one.actions, same.actions)
    assert one.actions.tolist() != other.actions.tolist()


def same_match(one: Match, other: Match) -> None:
    for name in ("results", "actions", "length", "forfeits", "seeds"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


@pytest.mark.parametrize("hosts", [(True, True), (False, True)])
def test_python_functions_play_the_same_match(hosts: tuple[bool, bool]) -> None:
    game = make("tic_tac_toe")
    a, b = (from_host(p) if host else p for p, host in zip((lowest(game), highest(game)), hosts, strict=True))
    same_match(play(game, a, b, jax.random.key(0), GAMES), edges("tic_tac_toe"))


def test_both_players_always_have_work_for_all_pairs_where_players_alternate() -> None:
    game, asked = make("connect_four"), []

    def remember(player: Player) -> Player:
        def rule(params: Any, key: Any, states: Any, which: Any) -> Any:
            asked.append(which.copy())
            return player.rule(params, key, states, which)

        return Player(player.name, rule, on_host=True)

    match = play(game, remember(lowest(game)), remember(highest(game)), jax.random.key(0), GAMES)
    assert {len(which) for which in asked} == {12}
    shortest = int(match.length.min()) - 2
    assert all(which.all() for which in asked[: 2 * shortest])
    assert sum(which.sum() for which in asked) == (match.length - 2).sum()
    assert len(asked) == 2 * (match.length.max() - 2)


def test_a_player_may_move_twice_running() -> None:
    settings = MatchSettings(games=24, opening_moves=1)
    match = play(DOUBLE_MOVE, lowest(DOUBLE_MOVE), highest(DOUBLE_MOVE), jax.random.key(0), settings)
    lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    for number in range(24):
        owner: dict[int, int] = {}
        for ply, action in enumerate(moves_of(match, number)):
            assert action not in owner
            seat = (ply + 1) // 2 % 2
            if ply >= match.opening_moves:
                legal = [a for a in range(9) if a not in owner]
                assert action == EDGES[seats(match, number)[seat]](legal)
            owner[action] = seat
        won = {owner[a] for a, b, c in lines if a in owner and owner[a] == owner.get(b) == owner.get(c)}
        assert len(owner) == 9 or won
        winner = seats(match, number)[won.pop()] if won else None
        assert match.results[number] == {"lowest": 1.0, "highest": -1.0, None: 0.0}[winner]


@pytest.mark.parametrize("action", [0, -5, 99])
def test_a_move_that_is_not_legal_loses(action: int) -> None:
    game = make("tic_tac_toe")

    def always(params: Any, key: Any, states: Any, which: Any) -> Any:
        return np.full(len(which), action)

    match = play(game, Player("stubborn", always, on_host=True), lowest(game), jax.random.key(0), GAMES)
    assert match.forfeits.all()  # point 0 is free at most once
    assert (match.results == -1).all()
    assert f"{match.forfeits.sum()} games lost by illegal moves" in str(match)
    for number in range(24):
        positions = replay(match, number)
        assert not positions[-1].over
        assert seats(match, number)[positions[-1].to_play] == "stubborn"
        assert not 0 <= action < 9 or not positions[-1].legal_actions()[action]


def test_other_parameters_need_no_new_program() -> None:
    game = make("tic_tac_toe")

    def evaluate(params: Any, observation: Any) -> Any:
        logits = jax.numpy.broadcast_to(params, (len(observation.planes), 9))
        return players.Evaluation(logits, logits[:, 0])

    first, second = (np.arange(9.0)[::step] for step in (1, -1))
    before = matches._play._cache_size()
    up, down = (players.policy(name, evaluate, game, p) for name, p in (("up", first), ("down", second)))
    one, other = (play(game, *pair, jax.random.key(0), GAMES) for pair in ((up, down), (down, up)))
    assert matches._play._cache_size() == before + 1
    same_match(one, replace(edges("tic_tac_toe"), results=one.results, actions=one.actions, length=one.length))
    # `up` prefers high numbers: the same games as those of the players that take the highest and the lowest.
    np.testing.assert_array_equal(other.actions, edges("tic_tac_toe").actions)


def test_parameters_on_a_device_need_one_program_for_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    game = make("tic_tac_toe")

    def evaluate(params: Any, observation: Any) -> Any:
        logits = jax.numpy.broadcast_to(params, (len(observation.planes), 9))
        return players.Evaluation(logits, logits[:, 0])

    placed = jax.device_put(np.arange(9.0), jax.local_devices()[0])
    monkeypatch.setattr(matches, "_CALL", 0.0)  # every call has one round of moves
    before = matches._play._cache_size()
    up, down = (players.policy(name, evaluate, game, sign * placed) for name, sign in (("up", 1), ("down", -1)))
    match = play(game, down, up, jax.random.key(0), GAMES)
    assert matches._play._cache_size() == before + 1
    np.testing.assert_array_equal(match.actions, edges("tic_tac_toe").actions)


def test_players_apart_play_the_same_match_and_share_their_programs() -> None:
    game = make("tic_tac_toe")
    before = matches._play._cache_size()
    same_match(play(game, lowest(game), highest(game), jax.random.key(0), GAMES, apart=True), edges("tic_tac_toe"))
    assert matches._play._cache_size() <= before + 1, "that of the match which it is compared with"


@pytest.mark.parametrize("apart", [False, True])
def test_when_it_is_stopped_the_games_that_are_over_count(monkeypatch: pytest.MonkeyPatch, apart: bool) -> None:
    monkeypatch.setattr(matches, "_CALL", 0.0)
    game, calls, shown = make("tic_tac_toe"), [], []

    def stop() -> bool:
        calls.append(safe_exit._sections)
        return len(calls) == 5  # rounds of moves, after openings of two

    options = {"stop": stop, "show": shown.append, "apart": apart}
    match = play(game, lowest(game), highest(game), jax.random.key(0), GAMES, **options)
    whole = edges("tic_tac_toe")
    assert 0 < match.finished.sum() < 24
    assert match.stopped
    assert not whole.stopped
    assert not any(calls), "finished games would be lost"
    played = np.minimum(whole.length[:, None] - 2, np.arange(1, 5)).sum(0)
    assert [standing.moves for standing in shown] == played.tolist()
    assert [standing.finished for standing in shown] == [int((whole.length <= 2 + n).sum()) for n in range(1, 5)]
    assert {standing.finished + standing.under_way for standing in shown} == {24}
    np.testing.assert_array_equal(match.finished, whole.length <= 2 + 5)
    np.testing.assert_array_equal(match.results[match.finished], whole.results[match.finished])


@pytest.mark.parametrize("games", [0, 1, 7])
def test_odd_numbers_of_games(games: int) -> None:
    with pytest.raises(OptionError, match=f"expected an even number of games, got {games}"):
        edges("tic_tac_toe", settings=MatchSettings(games=games))


def given(name: str, until: MatchLimits = NO_LIMITS, host: bool = False) -> Match:
    """A match of the edges from openings that are made beforehand."""
    game = make(name)
    start = openings(game, jax.random.split(jax.random.key(0))[0], 12, 2)
    a = from_host(lowest(game)) if host else lowest(game)
    return play(game, a, highest(game), jax.random.key(0), start=start, until=until)


def test_openings_may_be_given() -> None:
    same_match(given("tic_tac_toe"), edges("tic_tac_toe"))
    assert given("tic_tac_toe").finished.all()


@pytest.mark.parametrize("host", [False, True])
@pytest.mark.parametrize("until", [MatchLimits(a=4), MatchLimits(b=5.5), MatchLimits(a=20, b=3)])
def test_a_match_may_end_as_soon_as_it_is_decided(until: MatchLimits, host: bool) -> None:
    whole, match = edges("tic_tac_toe"), given("tic_tac_toe", until, host)
    done = match.finished
    assert 0 < done.sum() < 24
    np.testing.assert_array_equal(match.results[done], whole.results[done])
    np.testing.assert_array_equal(match.length[done], whole.length[done])
    # The games that ended first are finished, and before the last of them nobody had reached a limit.
    assert whole.length[done].max() < whole.length[~done].min()
    points = (np.sign(whole.results) + 1) / 2
    before = done & (whole.length < whole.length[done].max())
    reached = [points[games].sum() >= until.a or (1 - points[games]).sum() >= until.b for games in (done, before)]
    assert reached == [True, False]
    assert match.result.games == done.sum()
    assert match.result.wins == (whole.results[done] > 0).sum()


def test_other_limits_need_no_new_program() -> None:
    given("tic_tac_toe", MatchLimits(a=4))
    before = matches._play._cache_size()
    given("tic_tac_toe", MatchLimits(b=7.5))
    assert matches._play._cache_size() == before


def test_without_swapping_colours_half_of_the_games_are_played() -> None:
    game = make("tic_tac_toe")
    shown: list[matches.MatchStanding] = []
    one = play(game, lowest(game), highest(game), jax.random.key(0), GAMES, swap=False, show=shown.append)
    both = edges("tic_tac_toe")
    assert one.finished.tolist() == [True, False] * 12
    assert np.array_equal(one.results[::2], both.results[::2])
    assert (one.result.games, both.result.games) == (12, 24)
    assert all(standing.finished + standing.under_way == 12 for standing in shown)
    assert shown
