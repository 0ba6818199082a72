"""The gate of a run on a cluster: its matches are played elsewhere, and the verdicts are carried out by the learner."""

from pathlib import Path
from typing import Any

import pytest

from tengen.cluster.elsewhere import TaskResult
from tengen.cluster.fleet import Fleet
from tengen.cluster.gate import ClusterGate, JudgedCandidate
from tengen.cluster.run import ClusterRun
from tengen.cores import LIMIT
from tengen.match import results
from tengen.nets.specs import FILE_NAME
from tengen.run import directory, networks
from tests.helpers.fake_ray import InlineCluster
from tests.helpers.run_audit import audit_learner
from tests.helpers.tiny_runs import Listener, tiny

taken = Fleet.take


class Stage:
    """Stands for `Elsewhere`: the test says how a match ended."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.result: TaskResult | None = None
        self.again: list[bool] = []

    def begin(self, method: str, seconds: float, *arguments: Any) -> None:
        self.asked.append((method, *arguments))

    def take(self, patience: float = 0.0) -> TaskResult | None:
        found, self.result = self.result, None
        return found

    def change(self, config: Any, *, again: bool) -> None:
        self.again.append(again)


class GateSetting:
    """A run with one accepted network and one candidate, whose files are only read."""

    first, second = (networks.name_of("tic_tac_toe", "main", samples, 100) for samples in (10, 20))

    def __init__(self, base: Path) -> None:
        self.base, self.stage, self.said = base, Stage(), []
        self.add(networks.ACCEPTED, self.first, b"old")
        accepted = networks.NetworkEntry(base / networks.ACCEPTED / self.first, "main", 10, 100)
        networks.write_verdict(accepted, {"accepted": True, "number": 7})
        self.add(networks.CANDIDATES, self.second, b"new")
        stage: Any = self.stage
        self.gate = ClusterGate(tiny(), base, stage, lambda: False, self.said.append)

    def add(self, place: str, name: str, data: bytes) -> None:
        (self.base / place / name).mkdir(parents=True)
        (self.base / place / name / FILE_NAME).write_bytes(data)

    def judged(self, accepted: bool) -> TaskResult:
        counts = {"opponent": self.first, "wins": 3, "draws": 1, "losses": 0}
        verdict = {"schema": 1, "accepted": accepted, "number": 1, "kind": "share", "why": "enough", **counts}
        return TaskResult(JudgedCandidate(self.second, verdict, {"games.jsonl": b"{}"}))


def test_a_candidate_that_wins_elsewhere_is_accepted(tmp_path: Path) -> None:
    setting = GateSetting(tmp_path)
    assert not setting.gate.look()
    assert setting.stage.asked == [("judge", setting.second, b"new", setting.first, b"old")]
    assert not setting.gate.look()
    assert len(setting.stage.asked) == 1
    setting.stage.result = setting.judged(True)
    assert setting.gate.look()
    assert not setting.gate.busy
    newest = networks.newest(tmp_path)
    assert newest is not None
    assert (newest.name, newest.number) == (setting.second, 8)
    assert (tmp_path / "games" / "gate" / "games.jsonl").read_bytes() == b"{}"
    (result,) = results.read(tmp_path / "ratings" / "results.jsonl")
    assert (result.a, result.b, result.wins, result.draws) == (setting.second, setting.first, 3, 1)
    assert setting.said[-1].startswith(f"{setting.second} is accepted: +3 =1 -0 against")


def test_a_candidate_that_loses_is_rejected(tmp_path: Path) -> None:
    setting = GateSetting(tmp_path)
    setting.gate.look()
    setting.stage.result = setting.judged(False)
    assert setting.gate.look()
    assert [entry.name for entry in networks.rejected(tmp_path)] == [setting.second]
    newest = networks.newest(tmp_path)
    assert newest is not None
    assert newest.name == setting.first


def test_a_match_begins_again_if_its_process_dies_or_its_settings_change(tmp_path: Path) -> None:
    setting = GateSetting(tmp_path)
    setting.gate.look()
    setting.stage.result = TaskResult(None, "its node died")
    setting.gate.look()
    assert len(setting.stage.asked) == 2
    assert f"the match of {setting.second} at the gate begins again: its node died" in setting.said
    setting.gate.change(tiny("rating.games=4"))
    setting.gate.change(tiny("gate.games=2"))
    assert setting.stage.again == [False, True]
    setting.gate.look()
    assert len(setting.stage.asked) == 3


def test_a_verdict_that_was_written_before_a_kill_is_carried_out(tmp_path: Path) -> None:
    setting = GateSetting(tmp_path)
    (entry,) = networks.candidates(tmp_path)
    networks.write_verdict(entry, {"accepted": True, "number": 8, "why": "enough"})
    assert setting.gate.look()
    assert setting.stage.asked == []
    assert len(networks.accepted(tmp_path)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("room", [1, 8])
def test_self_play_gets_only_networks_that_were_accepted(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT, "1")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setattr("tengen.cluster.actor._SECONDS", 0.0)
    monkeypatch.setattr(Fleet, "start", lambda fleet: None)
    monkeypatch.setattr(Fleet, "take", lambda fleet, patience=0.0: fleet.step() or taken(fleet))
    words = ("cluster.gate=true", "cluster.stale_steps=4", "rating.minutes=1000", "goal.rows=600")
    settings = (*words, "gate.games=4", "gate.round_games=4", "gate.simulations=2", "gate.opening_moves=1")
    config, base = tiny(*settings, "gate.share=0.6"), tmp_path / "run"
    directory.write(config, base, ())
    cluster: Any = InlineCluster(room)
    with ClusterRun(config, base, Listener(), cluster=cluster) as loop:
        loop.prepare()
        loop.run(lambda: False)
        versions = len(loop.fleet.published)
    assert loop.reason == "600 rows are played"
    accepted, rejected = networks.accepted(base), networks.rejected(base)
    assert networks.candidates(base) == []
    assert len(accepted) + len(rejected) >= 3
    assert accepted
    assert versions == 1 + len(accepted), "the untrained network, and each that was accepted"
    assert [entry.number for entry in accepted] == list(range(1, len(accepted) + 1))
    assert len(results.read(base / "ratings" / "results.jsonl")) >= len(accepted) + len(rejected) - 1
    assert audit_learner(base).problems == []
