"""Long matches in rounds: the same openings whatever the rounds, no pair twice unless the last round needs it."""

import jax
import numpy as np
import pytest

from tengen import games
from tengen.match import players
from tengen.match.device_match import Match, MatchStanding
from tengen.match.driver import MatchPlan, MatchRounds, final_facts, play_match
from tengen.match.match_games import MatchGames
from tengen.match.openings import openings
from tests.oracles.go import Go as SlowGo

GAME = games.make("tic_tac_toe")
KEY = jax.random.key(3)


def rounds(pairs: int, at_once: int) -> MatchRounds:
    player = players.random(GAME)
    return MatchRounds(GAME, player, player, KEY, pairs, at_once, opening_moves=2)


@pytest.mark.parametrize(("pairs", "at_once"), [(11, 4), (12, 4), (3, 8), (1, 1)])
def test_every_pair_is_in_a_round(pairs: int, at_once: int) -> None:
    plan = rounds(pairs, at_once)
    assert plan.size <= at_once
    there = [range(plan.first_pair(n), plan.first_pair(n) + plan.size) for n in range(plan.count)]
    covered = [pair for part in there for pair in part]
    assert set(covered) == set(range(pairs))
    assert len(covered) - pairs < plan.count, "as good as none is played twice"


def test_openings_do_not_depend_on_the_rounds_and_a_round_can_be_repeated() -> None:
    plan = rounds(5, 2)
    matches = [plan.play(number) for number in range(plan.count)]
    found = {game.number: game for number, match in enumerate(matches) for game in match.games(plan.first_pair(number))}
    assert sorted(found) == list(range(10))
    np.testing.assert_array_equal(
        [found[2 * pair].actions[:2] for pair in range(5)], openings(GAME, jax.random.split(KEY)[0], 5, 2).actions
    )
    again = plan.play(1)
    np.testing.assert_array_equal(again.actions, matches[1].actions)
    assert {game.ending for game in found.values()} == {"played out"}
    assert {game.score for game in found.values()} == {None}


def test_scores_at_the_end() -> None:
    game = games.make("go", size=3, komi=2.5, max_moves=8)
    actions = np.array([[4, 9, 9, -1], [0, 1, 9, 9], [0, 1, 2, 9], [4, 3, 1, 5]], np.int16)
    length, ones = np.array([3, 4, 4, 4], np.int32), np.ones(4, bool)
    seeds = np.zeros((4, 2), np.uint32)
    match = Match("go", "a", "b", np.ones(4, np.float32), actions, length, ~ones, seeds, opening_moves=1, finished=ones)
    facts = final_facts(game, match)
    for place, played in enumerate(match.games(0, facts["score"])):
        slow = SlowGo(3, komi=2.5)
        for action in played.actions:
            slow.play(action)
        assert played.score == slow.score() == facts["score"][place]


def test_a_match_that_is_stopped_goes_on_and_has_the_same_games() -> None:
    player, plan = players.random(GAME), MatchPlan(12, opening_moves=2, seed=3, parallel=1, tables=1, at_once=4)
    shown: list[MatchStanding] = []

    def play(games: MatchGames, most: int = 99) -> MatchGames:
        play_match(GAME, (player, player), plan, games, lambda: len(games.played) >= most, shown.append)
        return games

    whole = play(MatchGames(("a", "b"), 12))
    assert whole.missing == []
    assert shown[0] == MatchStanding(0, 4, 0, compiling=True)
    moves = sum(len(game.actions) - 2 for game in whole.finished)
    assert shown[-1] == MatchStanding(12, 0, moves)
    part = play(MatchGames(("a", "b"), 12), most=4)
    assert sorted(part.played) == [0, 1, 2, 3]
    assert play(part).played == whole.played
