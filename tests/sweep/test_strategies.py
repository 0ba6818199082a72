"""Schedules that were worked out by hand."""

import itertools
import json
from dataclasses import asdict
from typing import Any

import pytest

from tengen import schema
from tengen.errors import OptionError
from tengen.sweep import strategies
from tengen.sweep.space import Space, ValueChoice, ValueRange
from tengen.sweep.strategies import Job, Round, Strategy

NINE = Space((ValueChoice("a", tuple(range(9))),))
LINE = Space((ValueRange("a", 0.0, 100.0), ValueChoice("net.name", ("x", "y"))))


def play(strategy: Strategy, score: Any, most: int = 50) -> list[Round]:
    """All rounds, if `score(job)` is what jobs score; each goes through JSON, as between two processes."""
    rounds: list[Round] = []
    while (following := strategy.following(rounds)) is not None:
        assert len(rounds) < most
        scored = Round(following.jobs, {job.trial: score(job) for job in following.jobs})
        rounds.append(schema.from_json(Round, json.dumps(asdict(scored))))
    return rounds


def budgets(rounds: list[Round]) -> list[tuple[int, Any]]:
    return [(len(each.jobs), each.jobs[0].budget) for each in rounds]


def test_grid_is_one_round_of_everything() -> None:
    both = Space((ValueChoice("a", (1, 2)), ValueChoice("b", (3, 4))))
    (only,) = play(strategies.make("grid", both, 500), lambda job: 0.0)
    assert [(job.trial, job.settings, job.budget) for job in only.jobs] == [
        ("000", {"a": 1, "b": 3}, 500),
        ("001", {"a": 1, "b": 4}, 500),
        ("002", {"a": 2, "b": 3}, 500),
        ("003", {"a": 2, "b": 4}, 500),
    ]


def test_random_depends_on_its_seed_alone() -> None:
    first, again, other = (
        play(strategies.make("random", LINE, 1.5, trials=5, seed=seed), lambda job: 0.0) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert budgets(first) == [(5, 1.5)]


@pytest.mark.parametrize(
    ("trials", "eta", "whole", "expected"),
    [
        (9, 3, 900, [(9, 100), (3, 300), (1, 900)]),
        (10, 3, 900, [(10, 100), (3, 300), (1, 900)]),
        (8, 2, 80, [(8, 10), (4, 20), (2, 40), (1, 80)]),
        (16, 4, 6.0, [(16, 0.375), (4, 1.5), (1, 6.0)]),
        (5, 2, 10, [(5, 3), (2, 5), (1, 10)]),  # steps are whole: a quarter of 10 is 3
        (2, 3, 10, [(2, 10)]),  # too few to choose from
        (27, 3, 5, [(27, 1), (9, 1), (3, 2), (1, 5)]),
    ],
)
def test_halving(trials: int, eta: int, whole: Any, expected: list[tuple[int, Any]]) -> None:
    found = play(strategies.make("halving", LINE, whole, trials=trials, eta=eta), lambda job: job.settings["a"])
    assert budgets(found) == expected
    for before, after in itertools.pairwise(found):
        best = sorted((job.settings["a"] for job in before.jobs), reverse=True)[: len(after.jobs)]
        assert [job.settings["a"] for job in after.jobs] == best
        assert all(job.source is None and job.trial in {j.trial for j in before.jobs} for job in after.jobs)


def test_halving_of_a_whole_grid_without_those_that_failed() -> None:
    found = play(strategies.make("halving", NINE, 90), lambda job: None if job.settings["a"] > 1 else job.settings["a"])
    assert [[job.settings["a"] for job in each.jobs] for each in found[1:]] == [[1, 0], [1]]
    assert budgets(play(strategies.make("halving", NINE, 90), lambda job: None)) == [(9, 10)]


def test_of_equal_scores_the_earlier_goes_on() -> None:
    found = play(strategies.make("halving", NINE, 90), lambda job: 1.0)
    assert [job.trial for job in found[1].jobs] == ["000", "001", "002"]


def test_population_by_hand() -> None:
    """Eight members, a quarter replaced: of each generation the worst two by copies of one of the best two."""
    strategy = strategies.make(
        "population", LINE, 40, population=8, generations=4, seed=7, kept=frozenset({"net.name"})
    )
    found = play(strategy, lambda job: job.settings["a"])
    assert budgets(found) == [(8, 10), (8, 20), (8, 30), (8, 40)]
    for number, (before, after) in enumerate(itertools.pairwise(found)):
        order = [job.trial for job in sorted(before.jobs, key=lambda job: -job.settings["a"])]
        assert [job.trial for job in after.jobs if job.source is None] == order[:6]
        new = [job for job in after.jobs if job.source is not None]
        assert [job.trial for job in new] == [f"{8 + 2 * number:03}", f"{9 + 2 * number:03}"]
        for job in new:
            assert job.source in order[:2]
            parent = next(each for each in before.jobs if each.trial == job.source)
            assert job.settings["net.name"] == parent.settings["net.name"]
            assert job.settings["a"] != parent.settings["a"] or parent.settings["a"] == 100.0
        staying = {job.trial: job.settings for job in before.jobs}
        assert all(job.settings == staying[job.trial] for job in after.jobs if job.source is None)
    assert max(job.settings["a"] for job in found[-1].jobs) >= max(job.settings["a"] for job in found[0].jobs)


def test_those_that_failed_are_replaced_first() -> None:
    strategy = strategies.make("population", LINE, 20, population=4, generations=2)
    found = play(strategy, lambda job: 1.0 if job.trial == "002" else None)
    assert [(job.trial, job.source) for job in found[1].jobs] == [
        ("002", None),
        ("004", "002"),
        ("005", "002"),
        ("006", "002"),
    ]
    assert len(play(strategy, lambda job: None)) == 1


def test_the_smallest_population() -> None:
    found = play(strategies.make("population", LINE, 20, population=2, generations=2), lambda job: float(job.trial))
    assert [(job.trial, job.source) for job in found[1].jobs] == [("001", None), ("002", "001")]


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("grid", {"budget": 5}, "--strategy grid: takes lists alone, because a is a range"),
        ("grid", {"trials": 3}, "--trials: is for --strategy random or halving, not for grid"),
        ("random", {"budget": 5}, "--strategy random: needs --trials N"),
        ("random", {"trials": 0}, "--trials: expected a whole number from 1 to 1000, got 0"),
        ("random", {"trials": 3, "population": 4}, "--population: is for --strategy population, not for random"),
        ("halving", {"trials": 3}, "--strategy halving: divides a budget; give --minutes"),
        ("halving", {"budget": 5}, "--strategy halving: needs --trials N, because a is a range"),
        ("halving", {"budget": 5, "trials": 9, "eta": 1}, "--eta: expected a whole number from 2 to 100, got 1"),
        ("population", {"budget": 5}, "needs --population N and --generations G"),
        (
            "population",
            {"budget": 5, "population": 1, "generations": 2},
            "--population: expected a whole number from 2",
        ),
        ("population", {"budget": 5, "population": 2, "generations": 0}, "--generations: expected a whole number"),
        ("population", {"population": 2, "generations": 2}, "--strategy population: divides a budget"),
    ],
)
def test_wrong_options(kind: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError) as caught:
        strategies.make(kind, LINE, options.pop("budget", None), **options)
    assert said in str(caught.value)


def test_a_grid_that_is_too_large() -> None:
    with pytest.raises(OptionError, match="1,024 combinations"):
        strategies.make("grid", Space(tuple(ValueChoice(str(n), (1, 2, 3, 4)) for n in range(5))), 5)


def test_a_job_is_plain_data() -> None:
    job = Job("003", {"a": 1.5, "b": [1, "x"], "c": None}, 100, "001")
    assert schema.from_json(Round, json.dumps(asdict(Round((job,))))) == Round((job,))
