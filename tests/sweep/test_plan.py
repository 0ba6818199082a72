"""From the command line to a plan, and all that is said before anything starts."""

import json
from dataclasses import asdict
from typing import Any

import pytest

from tengen import schema
from tengen.errors import ConfigError, OptionError, TengenError
from tengen.sweep import plan
from tengen.sweep.plan import PlannedTrial, SweepPlan

LR = "train.optimizer.learning_rate"


def make(
    *sets: str, grids: tuple[str, ...] = ("train.batch=16,32",), randoms: tuple[str, ...] = (), **options: Any
) -> PlannedTrial:
    budgets = {unit: options.pop(unit, None) for unit in plan.UNITS}
    return plan.make("tic_tac_toe", sets, grids, randoms, budgets=budgets, **options)


def overrides(planned: PlannedTrial) -> list[tuple[str, ...]]:
    first = planned.strategy.following(())
    assert first is not None
    return [planned.overrides(job, first) for job in first.jobs]


def test_a_budget_takes_the_place_of_the_configurations_goal() -> None:
    planned = make(steps=300)
    assert overrides(planned) == [("train.batch=16", "goal.steps=300"), ("train.batch=32", "goal.steps=300")]
    assert (planned.config.goal.minutes, planned.config.goal.steps) == (None, 300)
    limited = make("goal.minutes=7", steps=300)
    assert (limited.config.goal.minutes, limited.config.goal.steps) == (7.0, 300)


def test_without_a_budget_the_configurations_goal_is_one() -> None:
    assert overrides(make()) == [("train.batch=16",), ("train.batch=32",)]
    halving = make(strategy="halving", eta=2)
    assert (halving.plan.unit, halving.plan.budget) == ("minutes", 1.4)
    with pytest.raises(OptionError, match="trials would never end"):
        make("goal.minutes=null")
    with pytest.raises(OptionError, match="--strategy halving: divides a budget"):
        make("goal.steps=5", strategy="halving")


def test_which_strategy_is_meant() -> None:
    assert make().plan.strategy == "grid"
    assert make(trials=1).plan.strategy == "random"
    assert make(grids=(), randoms=(f"{LR}=1e-4..1e-2",), trials=2).plan.strategy == "random"


def test_what_is_looked_at() -> None:
    assert (make().plan.metric, make().plan.highest) == ("rating", True)
    assert make("rating.references=[]").plan.metric == "loss"
    assert not make(metric="value_loss").plan.highest
    with pytest.raises(OptionError, match="--metric rating: needs players that all trials meet"):
        make("rating.references=[]", metric="rating")


def test_every_trial_is_checked_before_the_first_begins() -> None:
    with pytest.raises(ConfigError) as caught:
        make(grids=("train.batch=16,0,many",))
    assert [text.partition(" (")[0] for text in caught.value.problems] == [
        "train.batch: expected a whole number from 1 to 1000000, got 0",
        'train.batch: expected a whole number from 1 to 1000000, got "many"',
    ]
    # Good alone, and not good together.
    with pytest.raises(ConfigError, match="selfplay.cheap_simulations: expected at most search.simulations, 4"):
        make(grids=("search.simulations=4,64", "selfplay.cheap_simulations=2,16"))
    with pytest.raises(ConfigError, match=r"goal.minutes: expected a number from 0.01"):
        make(strategy="halving", minutes=0.05, eta=2, grids=("train.batch=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",))


@pytest.mark.parametrize("options", [{"steps": 0}, {"steps": -5}, {"minutes": 0.0}, {"minutes": float("nan")}])
def test_budgets_that_are_none(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="goal."):
        make(**options)


def test_contradictions() -> None:
    with pytest.raises(OptionError, match="--minutes and --steps: a trial has one budget"):
        make(minutes=1.0, steps=5)
    with pytest.raises(OptionError, match="--eta: is for --strategy halving, not for grid"):
        make(steps=5, eta=2)
    with pytest.raises(OptionError, match=r"train.batch: is both varied and given with --set"):
        make("train.batch=8", steps=5)


def test_the_learning_rate_falls_over_a_whole_trial() -> None:
    kept = {"strategy": "population", "population": 2, "generations": 3}
    planned = make(steps=300, **kept)
    assert planned.config.train.schedule.length == 300
    assert "over all 300 steps" in planned.notes[0]
    by_time = make(minutes=3.0, **kept)
    assert by_time.config.train.schedule.length is None
    assert "falls to its lowest at the end of every round" in by_time.notes[0]
    assert make("train.schedule.kind=constant", minutes=3.0, **kept).notes == ()
    assert make(steps=300).config.train.schedule.length is None  # a grid's trials end once


def test_runs_with_the_same_settings_have_seeds_of_their_own() -> None:
    repeated = make(steps=5, strategy="random", trials=5, grids=("train.batch=16,32",))
    found = [dict(text.split("=") for text in each) for each in overrides(repeated)]
    assert len({(each["train.batch"], each.get("run.seed")) for each in found}) == 5
    assert "run.seed" not in found[0]
    members = make(steps=5, strategy="population", population=3, generations=1)
    assert [each[1:] for each in overrides(members)][1:] == [
        ("run.seed=2", "goal.steps=5"),
        ("run.seed=3", "goal.steps=5"),
    ]
    seeds = make(steps=5, strategy="population", population=2, generations=1, grids=("run.seed=7,8",))
    assert sorted(each[0] for each in overrides(seeds)) == ["run.seed=7", "run.seed=8"]


def test_what_a_copy_takes_over() -> None:
    planned = make(
        steps=50,
        strategy="population",
        population=4,
        generations=2,
        grids=("net.name=b1c8,b2c16", "train.optimizer.kind=sgd,adamw", "train.batch=8,16"),
    )
    assert getattr(planned.strategy, "kept") == {"net.name", "train.optimizer.kind"}  # noqa: B009


def test_json_and_back() -> None:
    found = make(steps=50, strategy="halving", trials=2, eta=2, seed=4).plan
    assert schema.from_json(SweepPlan, json.dumps(asdict(found))) == found
    with pytest.raises(TengenError, match="schema: expected one of 1, got 99"):
        schema.from_data(SweepPlan, {**asdict(found), "schema": 99})


def test_trainings_of_roles() -> None:
    """Results are looked at, not losses; what a copy could not go on with stays."""
    grids = ("host.games=64,128", "host.n_step=1,2", "host.gamma=0.9,0.95", "host.net.name=mlp1x8,mlp1x16")
    options: dict[str, Any] = {"strategy": "population", "population": 4, "generations": 2}
    planned = plan.make("dqn_hironaka3", (), grids, (), budgets={"steps": 50}, **options)
    assert (planned.plan.metric, planned.plan.highest) == ("host_vs_random", True)
    assert getattr(planned.strategy, "kept") == {"host.games", "host.n_step", "host.net.name"}  # noqa: B009
    alone = plan.make("dqn_hironaka2", (), ("agent.batch=8,16",), (), budgets={"steps": 50})
    assert alone.plan.metric == "agent_vs_host"
