"""A whole run whose actors are objects in this process: its directory is that of a fused run, in every respect."""

from pathlib import Path
from typing import Any

import pytest

from tengen.cluster.fleet import Fleet
from tengen.cluster.run import ClusterRun
from tengen.cores import LIMIT
from tengen.run import directory, metrics, part_status
from tests.helpers.fake_ray import InlineCluster
from tests.helpers.run_audit import audit_learner
from tests.helpers.tiny_runs import Listener, prepared, tiny

taken = Fleet.take
SETTINGS = ("cluster.stale_steps=4", "rating.minutes=1000", "goal.rows=300")


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(LIMIT, "1")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setattr("tengen.cluster.actor._SECONDS", 0.0)
    monkeypatch.setattr(ClusterRun, "_rate", lambda *_: None)  # tests/loop has tests of ratings
    # The learner's thread does the watching, a step whenever it asks for games.
    monkeypatch.setattr(Fleet, "start", lambda fleet: None)
    monkeypatch.setattr(Fleet, "take", lambda fleet, patience=0.0: fleet.step() or taken(fleet))
    return tmp_path / "run"


@pytest.mark.slow
def test_a_run_reaches_its_goal_and_any_mode_goes_on_with_it(base: Path) -> None:
    directory.write(tiny(*SETTINGS), base, ())
    seen: list[part_status.PartStatus] = []

    cluster: Any = InlineCluster(2)
    loop = ClusterRun(tiny(*SETTINGS), base, Listener(), cluster=cluster)

    def stop() -> bool:
        seen.extend(part for part in part_status.look(base) if part.kind == part_status.NODE)
        if (
            0 < loop.trainer.step < 20 and loop.fleet.members
        ):  # as if the process had to end at once: what has arrived is not lost
            before = loop.counts.rows
            loop._keep_arrived()
            assert loop.counts.rows > before
        return False

    with loop:
        loop.prepare()
        loop.run(stop)
    assert loop.reason == "300 rows are played"
    assert loop.trainer.step > 0
    assert loop.network_path is not None
    found = audit_learner(base)
    assert found.chunks > 0
    assert found.problems == []
    assert found.rows == loop.counts.rows >= 300
    # Two actors have played, each with numbers of its own.
    (line,) = (line for line in metrics.read(base / metrics.NAME).lines if line["kind"] == "session")
    assert line["mode"] == "cluster"
    last = metrics.last(base / metrics.NAME, "progress") or {}
    assert last["rows"] == found.rows
    assert any(part.figures.get("actors") == 2 and part.name == "here" for part in seen)
    # The fused loop goes on with the same rows, steps and sessions.
    with prepared(base, *SETTINGS) as again:
        assert (again.counts.rows, again.trainer.step, again.counts.sessions) == (found.rows, loop.trainer.step, 2)
