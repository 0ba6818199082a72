"""Columns and charts from lines of metrics."""

from tengen.web import curves
from tests.helpers.web_runs import line, progress, tally


def test_a_fused_run_has_all_curves() -> None:
    lines = [progress(1), progress(2)]
    table = curves.progress_columns(lines, curves.differences(lines))
    assert table["elapsed"] == [5.0, 10.0]
    assert table["loss"] == [1.5, 1.0]
    assert table["loss/policy"] == [1.2, 1.2]
    assert table["policy_kl"] == [0.2, 0.2]  # the cross-entropy without the entropy of the target
    assert table["length"] == [7.0, 7.0]
    assert (table["first"], table["draws"], table["decided"]) == ([0.5, 0.5], [0.2, 0.3], [0.8, 0.7])
    ids = [chart["id"] for chart in curves.charts({"progress": table}, ("Black", "White"))]
    assert ids == [
        *("losses", "accuracy", "entropy", "value_error", "results", "decided", "length"),
        *("evaluations", "playing", "learning", "learning_rate", "window"),
    ]
    (results,) = [chart for chart in curves.charts({"progress": table}, ("Black", "White")) if chart["id"] == "results"]
    assert [one["label"] for one in results["series"]] == ["Black wins", "draws", "White wins"]


def test_a_run_in_parts_has_the_figures_of_its_parts() -> None:
    learner = {
        "samples": 640,
        "steps": 10,
        "losses": {"loss": 2.0, "policy": 1.5},
        "learning_rate": 0.1,
        "figures": {"gradient": 3.0, "samples": 640, "rows": 20},
    }
    parts = {
        "train main": {"figures": learner},
        "selfplay a": {"figures": {"evaluations_per_second": 10, "played": tally(4)}},
        "selfplay b": {"figures": {"evaluations_per_second": 5, "played": tally(8)}},
    }
    lines = [line(5.0, games=12, rows=20, window=0, losses={}, loss=None, steps_per_second=2.0, parts=parts)]
    table = curves.progress_columns(lines, curves.differences(lines))
    assert (table["loss"], table["loss/policy"], table["samples"]) == ([2.0], [1.5], [640])
    assert (table["learning_rate"], table["evaluations_per_second"]) == ([0.1], [15])
    assert table["samples_per_second"] == [128.0]
    assert (table["figure/gradient"], table["first"]) == ([3.0], [0.5])
    assert not {"figure/samples", "figure/rows", "window"} & set(table)  # axes, and a window that is not known yet


def test_a_process_that_begins_again_counts_from_nothing() -> None:
    lines = [line(1, played=tally(8)), line(2, played=tally(12)), line(3, played=tally(4)), line(4)]
    assert [new.get("games", 0) for new in curves.differences(lines)] == [8, 4, 4, 0]


def test_calibration_compares_predictions_with_results() -> None:
    lines = [line(n, played=tally(10 * n)) for n in range(1, 7)]
    found = curves.calibration(curves.differences(lines))
    assert found["all"][0] == {"predicted": 0.05, "actual": 0.05, "count": 60}
    assert (len(found["all"]), found["recent"][9]["count"]) == (10, 20)
    assert curves.calibration([{}, {}]) == {}


def test_values_that_are_no_numbers_leave_gaps() -> None:
    lines = [line(1, loss="?", games=True, losses=3, figures=None, played={"games": "x"}), line(2, loss=float("nan"))]
    table = curves.progress_columns(lines, curves.differences(lines))
    assert table == {"elapsed": [1, 2]}
    assert curves.charts({}, ("a", "b")) == []


def test_epochs_and_evaluations_are_tables() -> None:
    lines = [
        line(1, "epoch", samples=64, losses={"loss": 2.0}, validation={"loss": 2.5}),
        line(2, "evaluation", steps=9),
    ]
    assert curves.epoch_columns(lines)["validation/loss"] == [2.5]
    lines = [line(2, "evaluation", steps=9, host={"random": 0.5, "name": "x"})]
    table = curves.evaluation_columns(lines)
    assert table == {"elapsed": [2], "steps": [9], "host random": [0.5]}
    assert [chart["id"] for chart in curves.charts({"evaluations": table}, ("a", "b"))] == ["evaluation"]
    table["x_vs_o_length"] = [7.5]
    found = {
        chart["id"]: [one["column"] for one in chart["series"]]
        for chart in curves.charts({"evaluations": table}, ("a", "b"))
    }
    assert found == {"evaluation": ["host random"], "evaluation_length": ["x_vs_o_length"]}


def test_a_daemon_has_the_losses_of_its_networks() -> None:
    epochs = curves.epoch_columns([line(1, "network", samples=64, losses={"loss": 2.0}, validation={"loss": 2.5})])
    assert [chart["id"] for chart in curves.charts({"epochs": epochs}, ("a", "b"))] == ["training", "validation"]
    tables = {"epochs": epochs, "progress": {"elapsed": [1], "loss": [2.0]}}
    assert [chart["id"] for chart in curves.charts(tables, ("a", "b"))] == ["losses", "validation"]
