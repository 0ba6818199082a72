"""Shares, intervals and Elo differences, against formulas from the books and against simulated matches."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.match.scores import elo, interval, score, wilson


def test_counts() -> None:
    found = score([1, -1, 0.5, 0, -0.25, 1])
    assert (found.wins, found.draws, found.losses, found.games) == (3, 1, 2, 6)
    assert found.share == pytest.approx(3.5 / 6)


@pytest.mark.parametrize("results", [[], [1.0], [1.0, 0.0, -1.0]])
def test_a_match_is_pairs(results: list[float]) -> None:
    with pytest.raises(ValueError, match="pairs of games"):
        score(results)


def test_wilson_as_in_the_books() -> None:
    low, high = wilson(0.7, 10)  # 7 of 10: Brown, Cai and DasGupta's formula by hand
    assert (low, high) == (pytest.approx(0.3968, abs=1e-4), pytest.approx(0.8922, abs=1e-4))
    assert wilson(0.0, 10) == (0.0, pytest.approx(0.2775, abs=1e-4))
    assert wilson(1.0, 10) == (pytest.approx(0.7225, abs=1e-4), 1.0)


def test_elo_of_shares() -> None:
    assert elo(0.5) == 0
    assert elo(10 / 11) == pytest.approx(400)
    assert elo(0.64) == pytest.approx(100, abs=0.1)
    assert (elo(0), elo(1)) == (-math.inf, math.inf)


def test_one_sided_matches_stay_readable() -> None:
    found = score([1.0] * 100)
    assert math.isfinite(found.elo)
    assert found.elo_interval[0] == pytest.approx(elo(0.963), abs=2)
    assert found.elo_interval[1] == math.inf
    assert str(found).startswith("100.0 % (96.3 to 100.0) of 100 games, +100 =0 -0, Elo +921 (+566 to +inf)")


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=2, max_size=60).filter(lambda r: len(r) % 2 == 0))
def test_swapping_the_players_turns_everything_around(results: list[float]) -> None:
    one, other = score(results), score([-r for r in results])
    assert one.low <= one.share <= one.high
    assert (one.low, one.high) == (pytest.approx(1 - other.high), pytest.approx(1 - other.low))
    assert one.elo == pytest.approx(-other.elo)


@pytest.mark.parametrize("same", [0.0, 0.8], ids=["independent games", "openings that decide"])
def test_intervals_hold_the_truth_as_often_as_they_say(same: float) -> None:
    # With colours swapped, an opening that decides gives each player one game: pairs vary less than single games.
    rng = np.random.default_rng(0)
    held, widths = 0, []
    for _ in range(1000):
        games = (rng.random((50, 2)) < 0.6).astype(float)
        decided = rng.random(50) < same
        games[decided] = [1.0, 0.0]
        low, high = interval(games.mean(1))
        truth = 0.6 * (1 - same) + 0.5 * same
        held += low <= truth <= high
        widths.append(high - low)
    assert 0.93 < held / 1000 < 0.98
    assert np.mean(widths) == pytest.approx(0.19 if same == 0 else 0.096, abs=0.01)


def test_games_that_were_not_finished_do_not_count() -> None:
    whole = score([1, 0, -1, 1])
    assert score([1, 0, -1, 1, 1, 1], np.array([True] * 4 + [False] * 2)) == whole
    half = score([1, 0, -1, 1, 0, -1], np.array([True] * 5 + [False]))
    assert (half.wins, half.draws, half.losses) == (2, 2, 1)
    assert half.low < half.share == 0.6 < half.high
    # By hand: deviations of the three pairs from 0.6 are 0.3, -0.2 and -0.1 points, and 2 * 0.24 for the one more.
    games = 0.24 / ((0.3**2 + 0.2**2 + 0.1**2 + 0.48) / 25)
    assert (half.low, half.high) == pytest.approx(wilson(0.6, games))
    with pytest.raises(ValueError, match="without a finished game"):
        score([1, 0], np.zeros(2, bool))
