"""Figures on their way to the display and to the metrics."""

from pathlib import Path

import pytest

from tengen.config.sections import GoalSection
from tengen.monitor.reporting import RunReporter
from tengen.run import metrics
from tengen.run.goals import RunCounts
from tengen.run.metrics import Metrics
from tengen.run.status import RatedNetwork, RunStatus
from tests.helpers.tiny_runs import Listener

FIGURES = {
    "loss": 2.5,
    "policy_loss": 1.5,
    "score_mean_loss": 3.0,
    "policy_accuracy": 0.5,
    "learning_rate": 0.01,
    "rows": 9.0,
}


def test_a_line_every_few_seconds_and_whenever_it_is_wanted(tmp_path: Path) -> None:
    time, display = [0.0], Listener()
    with Metrics(tmp_path, lambda: time[0]) as written:
        reporter = RunReporter(display, written, GoalSection(None, None, 1000, None), clock=lambda: time[0])
        reporter.rated(RatedNetwork(100.0, 20.0, "random"))
        for second in range(12):
            time[0] = float(second)
            standing = RunStatus(RunCounts(rows=100 * second, seconds=second), figures=FIGURES, samples=7)
            reporter.show("playing", standing, "something")
            reporter.report(standing)
        reporter.paused()
        reporter.report(RunStatus(RunCounts(rows=1100, seconds=11.0), figures=FIGURES), now=True)
    lines = metrics.read(tmp_path / metrics.NAME).lines
    assert [line["elapsed"] for line in lines] == [5.0, 10.0, 11.0]
    assert lines[1]["rows_per_second"] == 100.0
    assert lines[1]["losses"] == {"policy": 1.5, "score_mean": 3.0}
    assert lines[1]["figures"]["policy_accuracy"] == 0.5
    assert lines[1]["samples"] == 7
    shown = display.shown[-1]
    assert (shown.stage, shown.waiting, shown.losses["loss"], shown.learning_rate) == (
        "playing",
        "something",
        2.5,
        0.01,
    )
    assert str(shown.rating) == "100 +-20 against random"
    assert shown.speeds["rows"] == pytest.approx(100.0)


def test_pauses_do_not_keep_lines_from_being_written(tmp_path: Path) -> None:
    """A training that evaluates every second still has its curve of losses."""
    time = [0.0]
    with Metrics(tmp_path, lambda: time[0]) as written:
        reporter = RunReporter(Listener(), written, GoalSection(None, None, 1000, None), clock=lambda: time[0])
        for second in range(12):
            time[0] = float(second)
            reporter.report(RunStatus(RunCounts(rows=100 * second, seconds=second), figures=FIGURES))
            reporter.paused()
    assert [line["elapsed"] for line in metrics.read(tmp_path / metrics.NAME).lines] == [5.0, 10.0]


def test_tensorboard_gets_the_same(tmp_path: Path) -> None:
    class Board:
        def __init__(self) -> None:
            self.kinds: list[str] = []

        def write(self, kind: str, values: object) -> None:
            self.kinds.append(kind)

    board = Board()
    with Metrics(tmp_path) as written:
        reporter = RunReporter(Listener(), written, GoalSection(None, None, None, None), board)
        reporter.write("rating", {"elo": 1.0})
        reporter.report(RunStatus(RunCounts()), now=True)
    assert board.kinds == ["rating", "progress"]
