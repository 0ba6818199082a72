"""Figures on their way to the display and to the metrics."""

from pathlib import Path

import pytest

from tengen.monitor.progress import Goal, RatedNetwork
from tengen.monitor.reporting import RunReporter, RunStanding, losses, speeds
from tengen.run import metrics
from tengen.run.counts import RunCounts
from tengen.run.metrics import Metrics
from tests.helpers.tiny_runs import Listener

FIGURES = {
    "loss": 2.5,
    "policy_loss": 1.5,
    "score_mean_loss": 3.0,
    "policy_accuracy": 0.5,
    "learning_rate": 0.01,
    "rows": 9.0,
}


def test_losses_by_name() -> None:
    assert losses(FIGURES) == {"loss": 2.5, "policy": 1.5, "score_mean": 3.0}
    assert losses({}) == {}


def test_speeds() -> None:
    then = RunStanding(RunCounts(games=10, rows=100, evaluations=1000.0), steps=5, samples=80)
    now = RunStanding(RunCounts(games=14, rows=180, evaluations=5000.0), steps=9, samples=144)
    assert speeds(then, now, 4.0) == {
        "games_per_second": 1.0,
        "rows_per_second": 20.0,
        "evaluations_per_second": 1000.0,
        "steps_per_second": 1.0,
        "samples_per_second": 16.0,
    }
    assert speeds(RunStanding(RunCounts()), RunStanding(RunCounts(games=1)), 2.0)["evaluations_per_second"] is None


def test_a_line_every_few_seconds_and_whenever_it_is_wanted(tmp_path: Path) -> None:
    time, display = [0.0], Listener()
    with Metrics(tmp_path, lambda: time[0]) as written:
        reporter = RunReporter(display, written, Goal(rows=1000), clock=lambda: time[0])
        reporter.rated(RatedNetwork(100.0, 20.0, "random"))
        for second in range(12):
            time[0] = float(second)
            standing = RunStanding(RunCounts(rows=100 * second, seconds=second), figures=FIGURES, samples=7)
            reporter.show("playing", standing, "something")
            reporter.report(standing)
        reporter.paused()
        reporter.report(RunStanding(RunCounts(rows=1100, seconds=11.0), figures=FIGURES), now=True)
    lines = metrics.read(tmp_path / metrics.NAME).lines
    assert [line["elapsed"] for line in lines] == [5.0, 10.0, 11.0]
    assert lines[1]["rows_per_second"] == 100.0
    assert lines[1]["losses"] == {"policy": 1.5, "score_mean": 3.0}
    assert lines[1]["figures"]["policy_accuracy"] == 0.5
    assert lines[1]["samples"] == 7
    shown = display.shown[-1]
    assert (shown.stage, shown.waiting, shown.loss, shown.learning_rate) == ("playing", "something", 2.5, 0.01)
    assert str(shown.rating) == "100 +-20 against random"
    assert shown.rows_per_second == pytest.approx(100.0)


def test_tensorboard_gets_the_same(tmp_path: Path) -> None:
    class Board:
        def __init__(self) -> None:
            self.kinds: list[str] = []

        def write(self, kind: str, values: object) -> None:
            self.kinds.append(kind)

    board = Board()
    with Metrics(tmp_path) as written:
        reporter = RunReporter(Listener(), written, Goal(), board)
        reporter.write("rating", {"elo": 1.0})
        reporter.report(RunStanding(RunCounts()), now=True)
    assert board.kinds == ["rating", "progress"]
