"""Choosing matches: the inverse computed anew, integrals by brute force, players whose strength is known."""

import itertools

import numpy as np
import pytest

from tengen.match.pairing import SPREAD, Beliefs, beliefs, choose, gains
from tengen.match.ratings import fit
from tengen.match.results import ELO, MatchResult


def mean_information(gap: float, variance: float) -> float:
    """The mean of p (1 - p) over a normal distribution, as a sum over many points."""
    points = np.linspace(-8, 8, 20001)
    weights = np.exp(-(points**2) / 2)
    p = 1 / (1 + np.exp(-(gap + points * np.sqrt(variance))))
    return float((weights * p * (1 - p)).sum() / weights.sum())


def test_the_gain_is_what_more_games_take_off_the_inverse() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    information = root @ root.T / 4 + np.eye(4)
    known = Beliefs(rng.normal(size=4), np.linalg.inv(information))
    found = gains(known, games=30)
    for i, j in itertools.permutations(range(4), 2):
        d = np.eye(4)[i] - np.eye(4)[j]
        variance = d @ known.covariance @ d
        w = mean_information(known.strength[i] - known.strength[j], variance)
        after = np.linalg.inv(information + 30 * w * np.outer(d, d))
        # The flatter curve is near the integral, not equal to it.
        assert found[i, j] == pytest.approx(np.trace(known.covariance) - np.trace(after), rel=0.03)
    assert np.diag(found) == pytest.approx(0)


def test_the_uncertain_one_plays_an_equal() -> None:
    """c has played little, and is about as strong as b; everything else is known well."""
    results = [MatchResult("a", "0", 900, 0, 100), MatchResult("b", "a", 900, 0, 100), MatchResult("c", "b", 2, 0, 2)]
    chosen = choose(fit(results, "0"), ["0", "a", "b", "c"], 50)
    assert chosen is not None
    assert {chosen.a, chosen.b} == {"b", "c"}
    assert chosen.gain > 0


def test_only_those_who_are_able_play() -> None:
    ratings = fit([MatchResult("a", "b", 3, 0, 2), MatchResult("b", "c", 3, 0, 2)], "a", also=["d"])
    chosen = choose(ratings, ["a", "c", "a"], 10)
    assert chosen is not None
    assert {chosen.a, chosen.b} == {"a", "c"}
    assert choose(ratings, ["a"], 10) is None
    assert choose(ratings, [], 10) is None


def test_a_network_that_has_not_played_is_like_its_neighbour() -> None:
    results = [MatchResult("n1", "random", 95, 0, 5), MatchResult("n3", "n1", 190, 0, 10)]
    ratings = fit(results, "random", also=["n4"])
    run = ["n1", "n3", "n4"]
    known = beliefs(ratings, run)
    place = {rating.name: i for i, rating in enumerate(ratings.players)}
    assert known.strength[place["n4"]] == known.strength[place["n3"]]
    above = known.covariance[place["n4"], place["n4"]] - known.covariance[place["n3"], place["n3"]]
    assert above == pytest.approx((SPREAD / ELO) ** 2)
    chosen = choose(ratings, ["random", *run], 20, run)
    assert chosen is not None
    assert {chosen.a, chosen.b} == {"n3", "n4"}


def test_before_the_first_game_somebody_plays() -> None:
    assert choose(fit([], "random", also=["n1", "n2"]), ["random", "n1", "n2"], 20, ["n1", "n2"]) is not None
    assert choose(fit([], "random", also=["gtp:x"]), ["random", "gtp:x"], 20) is not None


def test_a_match_whose_end_is_known_is_not_played() -> None:
    """Far apart and both known well: nothing to gain there."""
    results = [MatchResult(f"n{i + 1}", f"n{i}", 350, 0, 50) for i in range(6)]
    known = beliefs(fit(results, "n0"))
    found = gains(known, 100)
    assert found[0, 6] < found[0, 1] / 10


def simulate(strengths: dict[str, float], active: bool, matches: int, games: int, seed: int) -> float:
    """The sum of squares of the errors that ratings really have after so many matches."""
    rng = np.random.default_rng(seed)
    names = list(strengths)
    pairs = list(itertools.combinations(names, 2))
    results: list[MatchResult] = []
    for _ in range(matches):
        if active:
            chosen = choose(fit(results, names[0], also=names), names, games, names)
            assert chosen is not None
            a, b = chosen.a, chosen.b
        else:
            a, b = pairs[rng.integers(len(pairs))]
        wins = int(rng.binomial(games, 1 / (1 + 10 ** ((strengths[b] - strengths[a]) / 400))))
        results.append(MatchResult(a, b, wins, 0, games - wins))
    ratings = fit(results, names[0], also=names)
    return sum((ratings[name].elo - strength) ** 2 for name, strength in strengths.items())


def test_choosing_beats_drawing_pairs_by_lot() -> None:
    """A run that goes up in steps of 150 Elo from a weak anchor: the same number of games, a smaller error."""
    strengths = {"random": 0.0} | {f"n{i}": 150.0 * (i + 1) for i in range(8)}
    chosen = [simulate(strengths, True, 40, 20, seed) for seed in range(8)]
    drawn = [simulate(strengths, False, 40, 20, seed) for seed in range(8)]
    assert np.mean(chosen) < 0.7 * np.mean(drawn)
