"""The document of a run."""

import json
from pathlib import Path

import pytest

from tengen.config import reader
from tengen.errors import TengenError
from tengen.run import changes, part_status
from tengen.run.part import Progress
from tengen.web.document import RunReader
from tests.helpers.patience import eventually
from tests.helpers.web_runs import NETWORKS, add_lines, line, make_run, progress


def test_a_run_with_everything(tmp_path: Path) -> None:
    base = make_run(tmp_path / "run")
    for folder, accepted in (("models", True), ("rejected", False)):
        (base / folder / NETWORKS[accepted]).mkdir(parents=True)
        (base / folder / NETWORKS[accepted] / "model.safetensors").write_bytes(b"")
        verdict = {"schema": 1, "accepted": accepted, "kind": "share", "share": 0.6}
        (base / folder / NETWORKS[accepted] / "verdict.json").write_text(json.dumps(verdict))
    add_lines(base, [line(110.0, "session", mode="fused")])
    change = {"time": "2026-01-31T12:00:30+00:00", "key": "train.lr_scale", "from": "1.0", "to": "0.5", "by": "set"}
    (base / changes.NAME).write_text(json.dumps(change) + "\n")
    found = RunReader(base, "here").document()
    assert json.loads(json.dumps(found, allow_nan=False)) == json.loads(json.dumps(found))
    assert (found["id"], found["game"], found["state"]) == ("here", "tic_tac_toe", "stopped")
    assert (found["games"], found["rows"], found["steps"]) == (200, 400, 80)
    assert found["settings"]["net.name"] == "b1c8"
    assert [chart["id"] for chart in found["charts"]][:2] == ["ratings", "losses"]
    assert found["tables"]["ratings"]["name"] == list(NETWORKS)
    assert found["references"] == [{"name": "random", "elo": 0.0}]
    assert [(mark["kind"], mark["elapsed"]) for mark in found["marks"]] == [
        ("rejected", 25.0),
        ("setting", 30.0),
        ("accepted", 50.0),
        ("start", 110.0),
    ]
    assert [(one["name"], one["state"]) for one in found["networks"]] == [
        (NETWORKS[1], "accepted"),
        (NETWORKS[0], "rejected"),
    ]
    assert found["games_of"] == [NETWORKS[1]]
    assert not found["problems"]


def test_what_changes_is_read_again_and_the_stamp_tells(tmp_path: Path) -> None:
    base = make_run(tmp_path / "run")
    reader = RunReader(base)
    before, stamp = reader.document(), reader.stamp()
    assert reader.stamp() == stamp
    add_lines(base, [progress(30)])
    assert reader.stamp() != stamp
    after = reader.document()
    assert (before["steps"], after["steps"]) == (80, 120)
    assert len(after["tables"]["progress"]["loss"]) == 21
    stamp = reader.stamp()
    (base / "matches" / "gnugo").mkdir(parents=True)
    summary = {"a": NETWORKS[0], "b": "gtp:gnugo", "wins": 3, "draws": 0, "losses": 1}
    (base / "matches" / "gnugo" / "summary.json").write_text(json.dumps(summary))
    assert reader.stamp() != stamp
    assert [(one["b"], one["wins"]) for one in reader.document()["matches"]] == [("gtp:gnugo", 3)]


def test_a_run_that_has_only_begun(tmp_path: Path) -> None:
    base = make_run(tmp_path / "run", lines=0)
    for name in ("metrics.jsonl", "ratings", "games"):
        (base / name).rename(tmp_path / name)
    found = RunReader(base).document()
    assert (found["state"], found["charts"], found["ladders"], found["marks"]) == ("new", [], [], [])


def test_damaged_files_are_problems_and_not_errors(tmp_path: Path) -> None:
    base = make_run(tmp_path / "run")
    (base / "ratings" / "results.jsonl").write_text("nonsense\n")
    (base / "config.yaml").write_text("- [")
    (base / "metrics.jsonl").write_bytes(b"\xff\xfe\n" * 3)
    found = RunReader(base).document()
    assert any("results.jsonl" in text for text in found["problems"])
    assert found["settings"] == {}


def test_a_daemon_has_curves_of_its_networks_which_no_gate_has_judged(tmp_path: Path) -> None:
    base = make_run(tmp_path / "run", "goal.minutes=3", lines=0)
    assert RunReader(base).summary()["goal"] is not None
    (base / "metrics.jsonl").unlink()
    made = base / "models" / NETWORKS[0]
    made.mkdir(parents=True)
    (made / "model.safetensors").write_bytes(b"")
    (made / "verdict.json").write_text(json.dumps({"schema": 1, "accepted": True, "why": "made by the daemon"}))
    (base / "train" / "main").mkdir(parents=True)
    known = {"chunks": 7, "losses": {"loss": 2.0, "policy": 1.5, "value": 0.5}, "validation": {"loss": 2.5}}
    figures = {"policy_accuracy": 0.25, "policy_target_entropy": 1.0, "policy_loss": 1.5, "loss": 2.0}
    rest = {"learning_rate": 0.01, "steps_per_second": 4.0, "figures": figures}
    add_lines(base / "train" / "main", [line(30.0, "network", steps=9, samples=90, rows=300, **known, **rest)])
    found = RunReader(base).document()
    charts = {chart["id"] for chart in found["charts"]}
    assert {"losses", "validation", "accuracy", "entropy", "learning", "learning_rate"} <= charts
    assert found["tables"]["progress"]["policy_kl"] == [0.5]
    assert found["tables"]["progress"]["samples_per_second"] == [40.0]
    assert found["data"]["chunks_read"] == 7
    assert found["goal"] is None, "a daemon goes on for ever"
    assert [one["state"] for one in found["networks"]] == ["saved"]
    assert not found["marks"]


def test_the_nodes_of_a_cluster_are_parts_with_their_figures(tmp_path: Path) -> None:
    base = make_run(tmp_path / "run")
    figures = {"actors": 2, "evaluations_per_second": 500, "games": 10, "rows": 70, "network_age": 3.5, "waiting": 1}
    node = {"words": "playing (2 actors)", "waiting": False, "seconds": 1.0, "figures": figures, "restarts": 3}
    with part_status.StatusWriter(base, "cluster", "main") as writer:
        about = {"appetite_rows_per_second": 900.0, part_status.NODES: {"box": node}}
        writer.show(Progress("learning", figures=about))
        reader = RunReader(base)
        found = eventually(lambda: len((seen := reader.document())["parts"]) == 2 and seen)
    assert [(part["kind"], part["name"]) for part in found["parts"]] == [("cluster", "main"), ("node", "box")]
    assert (found["parts"][1]["figures"], found["parts"][1]["restarts"]) == (figures, 3)
    assert found["data"]["appetite"] == 900.0


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(TengenError, match="empty, so there is no run"):
        RunReader(tmp_path)


def test_the_loss_of_a_run_in_parts_is_that_of_its_trainer(tmp_path: Path) -> None:
    base = make_run(tmp_path / "run")
    parts = {"train main": {"figures": {"losses": {"loss": 0.75}}}}
    add_lines(base, [line(200.0, games=1, rows=1, steps=1, loss=None, losses={}, parts=parts)])
    assert RunReader(base).summary()["loss"] == 0.75
    add_lines(base, [line(205.0, games=1, rows=1, steps=1, loss=None, losses={}, parts={})])  # the trainer has ended
    (base / "train" / "main").mkdir(parents=True)
    add_lines(base / "train" / "main", [line(90.0, "stopped", steps=2024, losses={"loss": 0.5, "policy": 0.25})])
    assert RunReader(base).summary()["loss"] == 0.5


def test_the_rating_of_a_run_in_parts_is_that_of_its_newest_rated_network(tmp_path: Path) -> None:
    base = make_run(tmp_path / "run")
    assert RunReader(base).summary()["rating"] == {"elo": 100.0, "error": 50.0}  # as the run measured it
    (base / "metrics.jsonl").unlink()
    add_lines(base, [line(0.0, "session", mode="async"), progress(1)])  # its gate writes results only
    found = RunReader(base)
    newest = next(one for one in found.document()["ladders"][0]["players"] if one["name"] == NETWORKS[1])
    assert found.summary()["rating"] == RunReader(base).summary()["rating"] == {k: newest[k] for k in ("elo", "error")}


def test_a_configuration_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = make_run(tmp_path / "run", "run.seed=77")  # no other test has read this text
    read: list[str] = []
    parse = reader.parse
    monkeypatch.setattr(reader, "parse", lambda text: read.append(text) or parse(text))
    found = RunReader(base)
    for number in range(3):
        add_lines(base, [progress(30 + number)])
        assert found.document()["settings"]["run.seed"] == 77
    assert len(read) <= 2  # by the page, and by the overview that `tengen status` prints too
