"""The speed of a run, from its lines of metrics."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tengen.bench.running import RunProcess, speeds
from tengen.errors import TengenError
from tengen.run.metrics import FIRST, Metrics


class Living:
    """A process that goes on, or ended with a code."""

    def __init__(self, code: int | None = None) -> None:
        self.returncode = code

    def poll(self) -> int | None:
        return self.returncode


def test_the_first_move_and_the_window_are_found(tmp_path: Path) -> None:
    clock = [0.0]
    run = RunProcess(tmp_path, datetime.now(UTC) - timedelta(seconds=60), Living())
    with Metrics(tmp_path, clock=lambda: clock[0]) as metrics:
        metrics.write(FIRST, {"what": "move"})
        for elapsed, steps in ((10.0, 0), (20.0, 5), (24.0, 9), (26.0, 10), (37.0, 20)):
            clock[0] = elapsed
            metrics.write("progress", {"steps": steps})
    assert run.first("move") == pytest.approx(60, abs=30)
    assert [line["steps"] for line in run.progress(10.0)] == [10, 20], "from five seconds after the first step on"
    dead = RunProcess(tmp_path, run.began, Living(2))
    with pytest.raises(TengenError, match="ended with code 2"):
        dead.first("step")


def test_speeds_are_means_and_shares_leave_out_the_matches() -> None:
    lines = [
        {"evaluations_per_second": 10.0, "rows_per_second": None, "playing": 1.0, "learning": 1.0},
        {"evaluations_per_second": 30.0, "rows_per_second": 4.0, "playing": 7.0, "learning": 3.0},
    ]
    found = {figure.name: figure.value for figure in speeds("go9", lines)}
    assert found == {
        "evaluations of `tengen run go9`": 20.0,
        "rows of `tengen run go9`": 4.0,
        "share of playing in `tengen run go9`": 0.75,
    }
