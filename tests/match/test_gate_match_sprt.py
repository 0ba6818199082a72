"""The sequential test against matches of known strength, and against a case worked out by hand."""

import math

import numpy as np
import pytest

from tengen.match.gate_match import Sprt
from tengen.match.results import expected_share

TEST = Sprt(low=0.0, high=60.0, error=0.1)


def test_by_hand() -> None:
    # Four pairs: 2, 1.5, 1 and 1 points of 2. The mean share is 0.6875; squared deviations sum to
    # 0.3125**2 + 0.0625**2 + 2 * 0.1875**2 = 0.171875, with the added pair 0.296875; a quarter of that is 0.07421875.
    # At 0 Elo 0.5 is expected, at 400 Elo 10/11 = 0.909091.
    against = 0.07421875 + (0.6875 - 0.5) ** 2
    speaks_for = 0.07421875 + (0.6875 - 0.909091) ** 2
    found = Sprt(0.0, 400.0, 0.05).ratio(np.array([1.0, 0.75, 0.5, 0.5]))
    assert found == pytest.approx(2 * math.log(against / speaks_for), abs=1e-5)
    assert found == pytest.approx(-0.2400, abs=1e-4)
    assert Sprt(0.0, 400.0, 0.05).bound == pytest.approx(math.log(19))


def test_expected_shares() -> None:
    assert expected_share(0) == 0.5
    assert expected_share(400) == pytest.approx(10 / 11)
    assert expected_share(-400) == pytest.approx(1 / 11)


def test_nothing_is_known_before_the_first_pair() -> None:
    assert TEST.ratio(np.array([])) == 0
    assert TEST.decided(np.array([])) is None


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_few_equal_pairs_decide_nothing_and_many_do(share: float) -> None:
    assert TEST.decided(np.full(3, share)) is None
    assert TEST.decided(np.full(100, share)) is (share == 1.0)


def test_swapped_players_swap_the_verdict() -> None:
    pairs = np.random.default_rng(0).choice([0, 0.25, 0.5, 0.75, 1], 50)
    assert Sprt(-5, 30, 0.05).ratio(pairs) == pytest.approx(-Sprt(-30, 5, 0.05).ratio(1 - pairs))


def verdict(rng: np.random.Generator, elo: float, sharp: float) -> tuple[bool, int]:
    """Of one match: what was decided, and after how many pairs. A share of openings, `sharp`, decides both games."""
    pairs = np.zeros(0)
    # Such openings give half of the points, so the others must give more for the same Elo.
    share = 0.5 + (expected_share(elo) - 0.5) / (1 - sharp)
    while (found := TEST.decided(pairs)) is None:
        draw = rng.random((8, 2)) < 0.2
        won = rng.random((8, 2)) < 0.5 + (share - 0.5) / 0.8
        pair = np.where(draw, 0.5, won).mean(1)
        pairs = np.append(pairs, np.where(rng.random(8) < sharp, 0.5, pair))
        assert len(pairs) < 10_000
    return found, len(pairs)


@pytest.mark.parametrize("sharp", [0.0, 0.6], ids=["independent games", "openings that decide"])
def test_it_is_wrong_about_as_often_as_it_may_be(sharp: float) -> None:
    rng = np.random.default_rng(0)
    accepted = {elo: np.mean([verdict(rng, elo, sharp)[0] for _ in range(400)]) for elo in (0.0, 30.0, 60.0)}
    # Rounds end a little beyond the bound, so errors are somewhat rarer than allowed; the standard error is 1.5 %.
    assert 0.02 < accepted[0.0] < 0.13
    assert 0.87 < accepted[60.0] < 0.98
    assert 0.4 < accepted[30.0] < 0.6  # half way either is right


def test_what_is_clear_takes_fewer_games() -> None:
    rng = np.random.default_rng(1)
    length = {elo: np.mean([verdict(rng, elo, 0.0)[1] for _ in range(100)]) for elo in (-100.0, 30.0, 200.0)}
    assert length[-100.0] < length[30.0] / 2 > length[200.0]
