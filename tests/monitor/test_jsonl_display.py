"""A run's progress as messages of the daemon."""

import io
from dataclasses import replace
from typing import Any

from tengen.config.sections import GoalSection
from tengen.monitor.jsonl_display import JsonlDisplay
from tengen.monitor.run_view import RunView
from tengen.protocol.messages import TrainingStatus, decode
from tengen.run.goals import RunCounts
from tengen.run.part_status import PartStatus
from tengen.run.status import NetworkCounts, RatedNetwork, RunStatus

NOW = RunStatus(
    RunCounts(games=1204, rows=21_400, seconds=130.0),
    stage="learning",
    network="c4-s100-d200",
    speeds={"games": 9.1, "evaluations": 1e6, "steps": 2.5},
    window=20_000,
    steps=310,
    figures={"loss": 2.31, "policy_loss": 1.72, "value_loss": 0.59},
    goal=GoalSection(10.0, None, None, 1000),
    board="  a b\n1 . x",
)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def statuses(clock: Clock, *updates: RunStatus) -> TrainingStatus:
    """After all of them."""
    lines = io.BytesIO()
    shown = JsonlDisplay(RunView(now=clock), lines, None, "c4")
    for update in updates:
        shown.update(update)
        clock.now += 5
    shown.tick()
    return decode(lines.getvalue().splitlines()[-1])


def test_the_figures_of_a_run() -> None:
    found = statuses(Clock(), NOW)
    assert (found.run, found.uptime) == ("c4", 5.0)
    assert (found.schedule.stage, found.schedule.since) == ("TRAINING", 5.0)
    assert found.schedule.words == "learning; 31 % of 1,000 steps, 00:04:36 left"
    training, selfplay = found.training, found.selfplay
    assert (training.step, training.steps, training.total_steps) == (310, 1000, 310)
    assert (training.loss, training.losses) == (2.31, {"policy": 1.72, "value": 0.59})
    assert (selfplay.games, selfplay.rows, selfplay.window) == (1204, 21_400, 20_000)
    assert (selfplay.board, found.loader) == ("  a b\n1 . x", None)


def test_stages() -> None:
    def stage(**change: Any) -> str:
        return statuses(Clock(), replace(NOW, **change)).schedule.stage

    assert stage(waiting="1 of 2 rows") == "WAITING_FOR_DATA"
    assert stage(stage="saving the network") == "EXPORTING"
    assert stage(stage="done") == "IDLE"
    assert stage(stage="playing") == "TRAINING"


def test_networks_are_those_that_were_rated() -> None:
    first = replace(NOW, network="one", rating=RatedNetwork(100.0, 5.0, "random"))
    second = replace(NOW, network="two", rating=RatedNetwork(200.0, 5.0, "random"))
    found = statuses(Clock(), NOW, first, replace(first, network="one and a bit"), second)
    assert [(each.name, each.rating, each.seconds) for each in found.networks] == [
        ("two", 200.0, 5.0),
        ("one", 100.0, 15.0),
    ]
    assert (found.schedule.networks_done, found.schedule.previous_cycle_seconds) == (2, 10.0)
    assert found.selfplay.rating == "200 +-5 against random"


def test_a_run_in_parts() -> None:
    part = PartStatus("train", "main", words="trained 4,096 samples", seconds=7.0, done=5, of=10, restarts=2)
    waits = PartStatus("gate", "gate", words="a network", waiting=True)
    found = statuses(Clock(), RunStatus(network="one", networks=NetworkCounts(accepted=3), parts=(part, waits)))
    train, gate = found.loader.stages
    assert (train.name, train.doing, train.since) == ("train main", "trained 4,096 samples (2 restarts)", 7.0)
    assert (train.filled, train.capacity) == (50, 100)
    assert (gate.doing, gate.capacity) == ("waiting: a network", 0)
    assert [each.name for each in found.networks] == ["one"]
    assert found.schedule.networks_done == 3


def test_words_go_elsewhere_and_a_closed_output_does_no_harm() -> None:
    lines, words = io.BytesIO(), io.StringIO()
    with JsonlDisplay(RunView(), lines, words, "c4", beat=0.01) as shown:
        shown.update(NOW)
        shown.say("a match")
        lines.close()
    assert words.getvalue() == "a match\n"
