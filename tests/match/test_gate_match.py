"""When a match is decided, by counting every possible end; and what rounds have in common."""

import itertools
from collections.abc import Iterable
from dataclasses import replace

import jax
import pytest

from tengen.config.settings.parts import GateSettings
from tengen.match.gate_match import GateMatch, decide, needed_points, rounds_and_pairs
from tengen.match.match_games import MatchGames, PlayedGame
from tests.helpers.game_recording import make
from tests.helpers.match_seats import highest, lowest
from tests.helpers.pipeline_data import gate_config

SHARE = GateSettings(kind="share", games=6, round_games=6)
SPRT = GateSettings(kind="sprt", games=400, round_games=40, sprt_low=0, sprt_high=50)


def played(settings: GateSettings, results: Iterable[float | None]) -> MatchGames:
    """A match with these results; None for a game that is not finished."""
    rounds, pairs = rounds_and_pairs(settings)
    games = enumerate(results)
    found = {number: PlayedGame(number, (), 0, (0,), one) for number, one in games if one is not None}
    return MatchGames(("a", "b"), 2 * rounds * pairs, found)


def decided(settings: GateSettings, results: Iterable[float | None]) -> bool | None:
    found = decide(settings, played(settings, results))
    return None if found is None else found.accepted


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.55, 0.58, 1.0])
def test_decided_as_soon_as_no_end_can_change_it_and_no_sooner(share: float) -> None:
    settings = replace(SHARE, share=share)
    for count in range(7):
        for results in itertools.product((-1, 0, 1), repeat=count):
            left = 6 - count
            worst, best = ((sum(results) + count + end) / 2 for end in (0, 2 * left))  # points at the end
            certain = True if worst / 6 >= share else False if best / 6 < share else None
            assert decided(settings, results) is certain, results


def test_draws_are_half_a_point() -> None:
    assert decided(SHARE, [0] * 6) is True
    assert decided(replace(SHARE, share=0.51), [0] * 6) is False
    assert decided(replace(SHARE, share=0.55), [1, 1, 1, 0, -1, -1]) is True  # 3.5 of 6 are 0.58
    assert decided(replace(SHARE, share=0.59), [1, 1, 1, 0, -1, -1]) is False


def test_rounding_asks_for_no_more_than_the_share() -> None:
    for games, share, needed in ((400, 0.55, 220.0), (200, 0.57, 114.0), (100, 0.555, 55.5), (100, 0.551, 55.5)):
        settings = replace(SHARE, games=games, round_games=games, share=share)
        assert needed_points(settings, games) == needed


def test_unfinished_games_do_not_count() -> None:
    assert decided(SHARE, [1, 1, None, None, -1, -1]) is None
    assert decided(SHARE, [1, 1, 1, None, -1, -1]) is True


def test_the_sequential_test_decides() -> None:
    assert decided(SPRT, []) is None
    assert decided(SPRT, [1, 1, 1, 0] * 15) is True
    assert decided(SPRT, [-1, 0, -1, -1] * 15) is False
    assert decided(SPRT, [1, -1, 1, 0] * 5) is None
    settings = replace(SPRT, games=200)
    undecided = decide(settings, played(settings, [1, 1, -1, -1, 1, 1, -1, -1, 1, 0] * 20))
    assert not undecided.accepted
    assert undecided.why.startswith("200 games have not decided: the log likelihood ratio is ")


@pytest.mark.parametrize(
    ("games", "at_once", "plan"),
    [
        (200, 64, (4, 25)),
        (16, 8, (2, 4)),
        (6, 64, (1, 3)),
        (202, 64, (4, 25)),
        (2, 2, (1, 1)),
    ],
)
def test_rounds_are_equally_large_and_never_too_many_games(games: int, at_once: int, plan: tuple[int, int]) -> None:
    rounds, pairs = rounds_and_pairs(GateSettings(games=games, round_games=at_once))
    assert (rounds, pairs) == plan
    assert 2 * rounds * pairs <= games
    assert 2 * pairs <= at_once


def contest(*overrides: str, seed: int = 0) -> GateMatch:
    game = make("tic_tac_toe")
    return GateMatch(game, lowest(game), highest(game), gate_config(*overrides).gate, jax.random.key(seed))


def test_all_rounds_together_have_every_opening_once() -> None:
    match = contest("gate.games=32", "gate.share=1", "gate.kind=sprt", "gate.sprt_error=0.0001")
    games = [match.play_round()]
    while match.decision is None:
        games.append(match.play_round())
    assert games == [8] * 4
    assert not match.games.missing
    assert len({game.actions[:2] for game in match.games.finished}) == 16
    records = list(match.games.records(make("tic_tac_toe"), "gate-{:06d}"))
    assert [records[0].id, records[-1].id] == ["gate-000001", "gate-000032"]
    assert len(records) == 32
    assert match.to_dict()["distinct_games"] == len({record.actions for record in records}) >= 16


def test_the_key_decides_about_all_rounds() -> None:
    one, same, other = (contest("gate.kind=sprt", seed=seed) for seed in (0, 0, 1))
    for match in (one, same, other):
        match.play_round()
        match.play_round()
    assert one.games.played == same.games.played
    assert [game.actions for game in one.games.finished[8:]] != [game.actions for game in other.games.finished[8:]]


def test_what_is_decided_is_not_played_to_the_end() -> None:
    match = contest("gate.share=0.1")  # 2 of 16 points
    match.play_round()
    assert match.decision.accepted
    assert match.result.games == len(match.games.played) < 8
    assert match.result.wins + match.result.draws / 2 >= 2
    told = match.to_dict()
    assert (told["games"], told["most_games"], told["needed_points"]) == (match.result.games, 16, 2.0)


def test_records_say_who_played_and_who_won() -> None:
    match = contest("gate.share=1", "gate.kind=sprt", "gate.games=8")
    match.play_round()
    points = {"lowest": 0.0, "highest": 0.0}
    for number, record in enumerate(match.games.records(make("tic_tac_toe"))):
        assert record.players == (("lowest", "highest") if number % 2 == 0 else ("highest", "lowest"))
        assert record.opening == 2
        for player, sign in zip(record.players, (1, -1), strict=True):
            assert record.result is not None
            points[player] += (1 + sign * record.result) / 2
    assert points["lowest"] == match.result.points
    assert sum(points.values()) == 8


@pytest.mark.slow
def test_more_games_than_there_are_openings() -> None:
    match = contest("gate.games=10000")
    assert match.play_round() > 0
    assert "different openings, which take turns in these 5000 pairs of games" in match.note
