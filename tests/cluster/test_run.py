"""A whole run whose actors are objects in this process: its directory is that of a fused run, in every respect."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tengen.cluster.fleet import Fleet
from tengen.cluster.run import ClusterRun
from tengen.cores import LIMIT
from tengen.run import config_file, metrics, part_status
from tests.helpers.fake_ray import FleetSetting, InlineCluster
from tests.helpers.run_audit import audit_learner
from tests.helpers.tiny_runs import Listener, prepared, tiny

taken = Fleet.take
SETTINGS = ("cluster.stale_steps=4", "rating.minutes=1000", "goal.rows=300")


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(LIMIT, "1")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setattr("tengen.cluster.actor._SECONDS", 0.0)
    monkeypatch.setattr(ClusterRun, "_rate", lambda *_, **__: None)  # tests/loop has tests of ratings
    # The learner's thread does the watching, a step whenever it asks for games.
    monkeypatch.setattr(Fleet, "start", lambda fleet: None)
    monkeypatch.setattr(Fleet, "take", lambda fleet, patience=0.0: fleet.step() or taken(fleet))
    return tmp_path / "run"


@pytest.mark.slow
def test_a_run_reaches_its_goal_and_any_mode_goes_on_with_it(base: Path) -> None:
    config_file.write(tiny(*SETTINGS), base, ())
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


@pytest.mark.parametrize("broken", ["", "hangs", "dead"])
def test_changed_settings_that_do_not_fit_a_node_are_refused(broken: str) -> None:
    setting, said, before = FleetSetting(2), [], tiny()
    setting.begin()
    setting.actors[1].reason = "too little memory"
    if broken:
        setattr(setting.actors[1], broken, True)
    run: Any = object.__new__(ClusterRun)
    ignore = SimpleNamespace(change=lambda *settings: None)
    vars(run).update(fleet=setting.fleet, _cluster=setting.cluster, rater=ignore, collector=SimpleNamespace())
    vars(run).update(components=SimpleNamespace(trainer=ignore), reporter=SimpleNamespace(say=said.append))
    vars(run).update(config=before, _rating=None, _gate=None, _publish=lambda: None)
    for _ in range(2):
        run._change(tiny("search.simulations=40", "train.lr_scale=0.5"))
    used = 40 if broken else 4  # nobody waits for a node that does not answer
    assert run.config == before if broken else tiny("train.lr_scale=0.5")
    assert setting.fleet.config == tiny(f"search.simulations={used}", "train.lr_scale=0.5")
    why = f"self-play stays as it is: {setting.cluster.names[setting.actors[1].node]}: too little memory"
    assert said == ([] if broken else [why] * 2)
