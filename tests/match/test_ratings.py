"""Ratings against closed forms, derivatives taken numerically, and players whose strength is known."""

import itertools
import json
import math

import numpy as np
import pytest

from tengen.errors import TengenError
from tengen.match.ratings import DRAWN, evidence, fit
from tengen.match.results import ELO, SURE, MatchResult


def expected(difference: float) -> float:
    return 1 / (1 + 10 ** (-difference / 400))


@pytest.mark.parametrize(("wins", "draws", "losses"), [(60, 0, 40), (10, 70, 20), (1, 0, 3)])
def test_two_players_have_a_closed_form(wins: int, draws: int, losses: int) -> None:
    games = wins + draws + losses + DRAWN
    share = (wins + draws / 2 + DRAWN / 2) / games
    found = fit([MatchResult("a", "b", wins, draws, losses)], anchor="b")
    assert found["a"].elo == pytest.approx(400 * math.log10(share / (1 - share)), abs=1e-4)
    assert found["a"].error == pytest.approx(SURE * ELO / math.sqrt(games * share * (1 - share)), rel=1e-6)
    assert (found["b"].elo, found["b"].error) == (0, 0)


def test_the_anchor_only_moves_the_scale() -> None:
    results = [MatchResult("a", "b", 60, 0, 40), MatchResult("b", "c", 30, 10, 60), MatchResult("c", "a", 5, 0, 5)]
    one, other = fit(results, anchor="a"), fit(results, anchor="c", elo=1000)
    assert other["c"].elo == 1000
    for x, y in itertools.permutations("abc", 2):
        assert one[x].elo - one[y].elo == pytest.approx(other[x].elo - other[y].elo, abs=1e-4)
        assert one.difference(x, y)[1] == pytest.approx(other.difference(x, y)[1], rel=1e-6)


def test_the_order_of_results_and_of_players_in_them_does_not_matter() -> None:
    results = [MatchResult("a", "b", 7, 1, 2), MatchResult("b", "c", 3, 3, 4), MatchResult("a", "b", 1, 1, 8)]
    turned = [MatchResult(r.b, r.a, r.losses, r.draws, r.wins) for r in reversed(results)]
    one, other = fit(results, "a"), fit(turned, "a")
    assert [p.name for p in one.players] == [p.name for p in other.players]
    assert [p.elo for p in one.players] == pytest.approx([p.elo for p in other.players])


def random_points(seed: int, count: int = 4) -> np.ndarray:
    """[N, N] what players scored against each other; some never met, some results are one-sided."""
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 6, (count, count)).astype(float)
    points *= rng.random((count, count)) < 0.7
    np.fill_diagonal(points, 0)
    return points


def results_of(points: np.ndarray) -> list[MatchResult]:
    pairs = itertools.combinations(range(len(points)), 2)
    return [MatchResult(f"p{i}", f"p{j}", int(points[i, j]), 0, int(points[j, i])) for i, j in pairs]


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_more_likely(seed: int) -> None:
    points = random_points(seed)
    found = fit(results_of(points), anchor="p0")
    strength = np.array([found[f"p{i}"].elo / ELO for i in range(4)])
    known = evidence(points, 0)
    best = known.log_likelihood(strength)
    rng = np.random.default_rng(seed)
    for size in (1e-3, 0.1, 1.0, 5.0):
        for _ in range(50):
            step = rng.normal(size=4) * size
            step[0] = 0
            assert known.log_likelihood(strength + step) < best


@pytest.mark.parametrize("seed", range(3))
def test_derivatives_are_those_of_the_function(seed: int) -> None:
    points, strength = random_points(seed), np.random.default_rng(seed).normal(size=4)
    strength[0] = 0
    known = evidence(points, 0)
    gradient, hessian = known.derivatives(strength)
    h = 1e-4
    unit = np.eye(4) * h
    value = known.log_likelihood
    for i in range(1, 4):
        slope = (value(strength + unit[i]) - value(strength - unit[i])) / (2 * h)
        assert gradient[i] == pytest.approx(slope, abs=1e-5)
        for j in range(1, 4):
            steps = [value(strength + a * unit[i] + b * unit[j]) * a * b for a in (1, -1) for b in (1, -1)]
            assert hessian[i, j] == pytest.approx(-sum(steps) / (4 * h * h), abs=1e-4)


def test_error_bars_hold_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(1)
    truth = {"random": 0.0, "one": 150.0, "two": 320.0, "three": 400.0}
    held = total = 0
    for _ in range(100):
        results = []
        for a, b in itertools.combinations(truth, 2):
            wins = int(rng.binomial(40, expected(truth[a] - truth[b])))
            results.append(MatchResult(a, b, wins, 0, 40 - wins))
        found = fit(results, anchor="random")
        for name in list(truth)[1:]:
            held += abs(found[name].elo - truth[name]) <= found[name].error
            total += 1
    assert 0.9 < held / total < 0.99


def test_one_sided_results_are_finite_and_uncertain() -> None:
    found = fit([MatchResult("net", "random", 100, 0, 0), MatchResult("better", "net", 50, 0, 0)], anchor="random")
    assert 700 < found["net"].elo < 1100
    assert found["better"].elo - found["net"].elo > 500
    assert all(math.isfinite(p.elo) and 0 < p.error < 2000 for p in found.players if p.name != "random")


def test_players_without_a_chain_of_games_to_the_anchor_are_as_uncertain_as_can_be() -> None:
    found = fit([MatchResult("a", "random", 6, 0, 4), MatchResult("x", "y", 6, 0, 4)], anchor="random")
    assert found["x"].error > 3000 > 500 > found["a"].error
    assert found["x"].elo - found["y"].elo == pytest.approx(found["a"].elo, abs=1e-4)
    assert found.difference("x", "y")[1] == pytest.approx(found["a"].error, rel=1e-6)


def test_an_anchor_that_never_played() -> None:
    found = fit([], anchor="random")
    assert [(p.name, p.elo, p.error, p.games) for p in found.players] == [("random", 0, 0, 0)]
    assert str(found) == "no games so far"


def test_games_against_oneself() -> None:
    with pytest.raises(TengenError, match="against itself"):
        fit([MatchResult("a", "a", 1, 0, 0)], anchor="a")


def test_a_chain_of_many_players() -> None:
    results = [MatchResult(f"net{i + 1}", f"net{i}", 64, 0, 36) for i in range(60)]
    found = fit(results, anchor="net0")
    assert [p.name for p in found.players] == [f"net{i}" for i in range(60, -1, -1)]
    assert found["net60"].elo == pytest.approx(60 * 400 * math.log10(64.5 / 36.5))
    errors = [found[f"net{i}"].error for i in range(61)]
    assert errors == sorted(errors)


def test_the_table() -> None:
    found = fit(
        [MatchResult("mcts:200", "random", 98, 1, 1), MatchResult("s1", "mcts:200", 30, 0, 70)], anchor="random"
    )
    header, *rows = str(found).splitlines()
    assert header.split() == ["player", "Elo", "+-", "games", "score"]
    assert [row.split()[:2] for row in rows] == [["1", "mcts:200"], ["2", "s1"], ["3", "random"]]
    assert rows[0].split()[-3:] == ["200", "84.2", "%"]
    assert len({len(row) for row in [header, *rows]}) == 1


def test_centred_errors_tell_how_well_players_know_each_other() -> None:
    lost = MatchResult("random", "a", 0, 0, 40)
    found = fit(
        [lost, MatchResult("a", "b", 60, 0, 40), MatchResult("b", "c", 50, 0, 50), MatchResult("a", "c", 45, 0, 55)],
        "random",
    )
    centred = found.centred()
    assert [(p.name, p.elo) for p in centred.players] == [(p.name, p.elo) for p in found.players]
    assert centred.difference("a", "c") == found.difference("a", "c")
    for name in "abc":
        assert found[name].error > 400, "nobody knows how far below random play is"
        assert centred[name].error < 60
    assert centred["random"].error > 400
    # The same players without the one who loses every game have about the same errors.
    alone = fit(
        [MatchResult("a", "b", 60, 0, 40), MatchResult("b", "c", 50, 0, 50), MatchResult("a", "c", 45, 0, 55)], "b"
    ).centred()
    assert centred["a"].error == pytest.approx(alone["a"].error, rel=0.1)


def test_two_players_have_one_difference() -> None:
    found = fit([MatchResult("a", "b", 20, 0, 0)], "b")
    assert found.centred() is found
    assert fit([], "random").centred().players[0].error == 0


def test_the_table_has_errors_for_all_who_have_one() -> None:
    found = fit([MatchResult("a", "b", 6, 0, 4), MatchResult("b", "c", 5, 0, 5)], "c")
    assert [len(line.split()) for line in str(found).splitlines()[1:]] == [7, 7, 6]
    assert [len(line.split()) for line in str(found.centred()).splitlines()[1:]] == [7, 7, 7]


def test_a_table_with_a_chart() -> None:
    results = [MatchResult("net1", "random", 90, 0, 10), MatchResult("net2", "net1", 60, 10, 30)]
    ratings = fit(results, "random", also=["net3"])
    lines = ratings.table(100).splitlines()
    assert lines[1].split()[:6] == [
        "1",
        "net2",
        f"{ratings['net2'].elo:.0f}",
        f"{ratings['net2'].error:.0f}",
        "100",
        "65.0",
    ]
    assert lines[2].split()[:2] == ["2", "net1"]
    assert lines[3].split()[:3] == ["3", "random", "0"]
    assert lines[4] == "without a game: 1 (net3)"
    # The strongest is furthest to the right, and error bars are around it.
    columns = [line.rindex("o") for line in lines[1:4]]
    assert columns == sorted(columns, reverse=True)
    assert "-o-" in lines[1]
    assert lines[3].endswith("o")
    assert len(max(lines, key=len)) <= 100


def test_a_narrow_terminal_has_no_chart() -> None:
    ratings = fit([MatchResult("a" * 60, "random", 9, 0, 1)], "random")
    lines = ratings.table(60).splitlines()
    assert all("-o" not in line for line in lines)
    assert "..." in lines[1]


def test_no_games() -> None:
    assert fit([], "random", also=["n"]).table() == "no games so far"


def test_equal_players_have_a_chart() -> None:
    assert "o" in fit([MatchResult("a", "b", 5, 0, 5)], "a").table()


def test_as_data() -> None:
    ratings = fit([MatchResult("a", "b", 7, 2, 1)], "b", also=["c"])
    found = json.loads(json.dumps(ratings.to_dict()))
    assert (found["zero"], found["games"], found["unplayed"]) == ("b", 10, ["c"])
    assert [(one["rank"], one["name"], one["games"], one["points"]) for one in found["players"]] == [
        (1, "a", 10, 8.0),
        (2, "b", 10, 2.0),
    ]
