"""The gate of a run on a cluster: its matches are played elsewhere, and the verdicts are carried out by the learner."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tengen import files
from tengen.cluster.elsewhere import Elsewhere, TaskResult
from tengen.cluster.fleet import Fleet
from tengen.cluster.gate import ClusterGate, GateActor, JudgedCandidate
from tengen.cluster.run import ClusterRun
from tengen.cores import LIMIT
from tengen.errors import TengenError
from tengen.loop.parts.gate import GatePart
from tengen.loop.parts.running import Once
from tengen.match import results
from tengen.nets.specs import FILE_NAME
from tengen.run import config_file, networks
from tengen.run.part import Progress, waiting
from tests.helpers.fake_ray import InlineCluster
from tests.helpers.run_audit import audit_learner
from tests.helpers.tiny_runs import Listener, tiny

taken = Fleet.take


class Stage(Elsewhere):
    """The test says how a match ended."""

    def __init__(self) -> None:
        super().__init__(GateActor, Any, tiny(), 1)
        self.asked: list[tuple[Any, ...]] = []
        self.result: TaskResult | None = None
        self.again: list[bool] = []

    def begin(self, method: str, seconds: float, *arguments: Any) -> None:
        self.asked.append((method, *arguments))

    def take(self, patience: float = 0.0) -> TaskResult | None:
        found, self.result = self.result, None
        return found

    def change(self, config: Any, section: str) -> bool:
        self.again.append(super().change(config, section))
        return self.again[-1]


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


def test_a_match_that_fails_twice_is_played_by_the_learner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setting, rounds = GateSetting(tmp_path), []
    monkeypatch.setattr(GatePart, "run_once", lambda part: rounds.append(1) or Progress("a round"))
    setting.gate.look()
    for _ in range(5):
        setting.stage.result = TaskResult(None, "ValueError: no")
        setting.gate.look()
    assert len(setting.stage.asked) == 2
    assert len(rounds) == 4
    setting.gate.change(tiny("gate.games=2"))
    setting.gate.look()
    assert len(setting.stage.asked) == 3, "other settings may help"


def test_a_candidate_without_its_file_is_rejected(tmp_path: Path) -> None:
    setting = GateSetting(tmp_path)
    (tmp_path / networks.CANDIDATES / setting.second / FILE_NAME).unlink()
    assert setting.gate.look()
    assert setting.stage.asked == []
    assert not setting.gate.busy
    assert "is rejected: it cannot be used" in setting.said[-1]


def test_the_learner_does_not_ask_again_at_once_for_what_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting, pauses = GateSetting(tmp_path), []
    monkeypatch.setattr(GatePart, "run_once", lambda part: waiting("no network can be read"))
    monkeypatch.setattr("tengen.cluster.gate.pause", lambda seconds, stop: pauses.append(seconds))
    (tmp_path / networks.ACCEPTED / setting.first / FILE_NAME).unlink()
    for number in (1, 2):
        assert not setting.gate.look(0.5)
        assert setting.gate.stuck == number
    assert pauses == [0.5, 0.5]
    assert setting.said == ["the gate waits: no network can be read"]
    monkeypatch.setattr(GatePart, "run_once", lambda part: Progress("a round"))
    assert setting.gate.look(0.5)
    assert setting.gate.stuck == 0


class LearnerStage:
    """As much of a `ClusterRun` as its gate concerns."""

    _gate_stops, _take_accepted = ClusterRun._gate_stops, ClusterRun._take_accepted
    _all_at_once, _accepted, _rated, _judged, _budgets = True, "", "", None, None

    def __init__(self, base: Path, left: float = math.inf) -> None:
        self.base, self.said, self.refreshed, self.rounds, self.stuck = base, [], 0, 0, 0
        self.config = tiny("cluster.gate=true")
        self.reporter = SimpleNamespace(say=self.said.append)
        self.rater = SimpleNamespace(refresh=self._refresh)
        self.networks = SimpleNamespace(look=lambda: None, parameters=self._parameters)
        self.components = SimpleNamespace(game=None)
        self._budget = SimpleNamespace(until_closing=lambda elapsed: left)
        self._metrics, self.trainer, self._saved_step = SimpleNamespace(elapsed=0.0), SimpleNamespace(step=1), 1
        self._gate, self._gate_end, self._say_once = self, math.inf, Once(self.said.append)
        self.busy, self.weights, self.collected = True, "", ""

    def _refresh(self) -> None:
        self.refreshed += 1

    def _parameters(self, name: str) -> str:
        if files.read_bytes(self.base / networks.ACCEPTED / name / FILE_NAME) == b"damaged":
            raise TengenError(f"{name} is damaged")
        return name

    def look(self, patience: float = 0.0) -> bool:
        """A round of a match that cannot go on."""
        self.rounds += 1
        self.stuck += 1
        return True

    def _stop(self) -> bool:
        return False

    def _show(self, words: str) -> None:
        pass

    def _look_at_gate(self, patience: float = 0.0, *, again: bool = False) -> None:
        ClusterRun._look_at_gate(cast(Any, self), patience, again=again)

    def _enter_stage(self) -> None:
        pass

    def _send(self) -> None:
        pass

    def _take_network(self, net: Any, name: str) -> None:
        self.collected = name


def test_an_accepted_network_that_cannot_be_read_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tengen.nets.saving.load", lambda path, game: None)
    setting = GateSetting(tmp_path)
    setting.add(networks.ACCEPTED, newer := networks.name_of("tic_tac_toe", "main", 30, 100), b"damaged")
    entry = networks.NetworkEntry(tmp_path / networks.ACCEPTED / newer, "main", 30, 100)
    networks.write_verdict(entry, {"accepted": True, "number": 8})
    learner = LearnerStage(tmp_path)
    for _ in range(3):
        learner._look_at_gate(again=True)
    assert (learner._accepted, learner.collected, learner.weights) == (setting.first,) * 3
    assert learner.said == [f"an accepted network cannot play, an older one does instead: {newer} is damaged"]


def test_ratings_of_the_learner_know_the_results_of_the_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tengen.nets.saving.load", lambda path, game: None)
    setting, learner = GateSetting(tmp_path), LearnerStage(tmp_path)
    learner._look_at_gate()
    before = learner.refreshed
    learner._look_at_gate()
    assert learner.refreshed == before, "there was no verdict"
    (entry,) = networks.candidates(tmp_path)
    networks.write_verdict(entry, {"accepted": False})
    networks.move(tmp_path, entry)
    learner._look_at_gate()
    assert learner.refreshed == before + 1
    assert learner._accepted == setting.first


def test_the_last_match_ends_when_its_time_is_over_or_nothing_can_be_read(tmp_path: Path) -> None:
    late = LearnerStage(tmp_path, left=-1.0)
    ClusterRun._to_rate(cast(Any, late), lambda: False)
    assert late.rounds == 0
    assert late._gate_stops(), "so a round that is under way ends"
    stuck = LearnerStage(tmp_path)
    ClusterRun._to_rate(cast(Any, stuck), lambda: False)
    assert 5 < stuck.rounds < 100
    assert not stuck._gate_stops()


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
    config_file.write(config, base, ())
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
