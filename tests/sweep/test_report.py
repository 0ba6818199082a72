"""The table, the charts, the picture, and what is said while a sweep goes on."""

import io
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import font_roboto
import pytest
import resvg_py
from rich.console import Console

from tengen.monitor.display import TerminalDisplay
from tengen.sweep import plan, report
from tengen.sweep.driver import Driver
from tengen.sweep.folder import SweepFolder
from tengen.sweep.report import ReportRow, SweepReport, svg
from tengen.sweep.scoring import TrialScore
from tengen.sweep.strategies import Job, Round
from tengen.sweep.trial import LocalExecutor, TrialResult
from tests.helpers.analyses import pixels


def row(
    trial: str, settings: dict[str, Any], value: float | None, error: float | None = None, **more: Any
) -> ReportRow:
    usual: dict[str, Any] = {
        "status": "done",
        "round": 1,
        "budget": 5,
        "source": None,
        "why": "",
        "values": {},
        "history": (),
    }
    score = None if value is None else TrialScore(value, error)
    return ReportRow(trial=trial, settings=settings, score=score, **usual | more)


def made(*rows: ReportRow, **more: Any) -> SweepReport:
    return SweepReport(**{"metric": "loss", "highest": False, "strategy": "grid", "unit": "steps", "rows": rows} | more)


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    """A halving: four began, two went on, of which one runs and one failed."""
    folder = SweepFolder(tmp_path / "sweep")
    wanted = plan.make(
        "tic_tac_toe",
        [],
        ["train.batch=4,8,16,32"],
        [],
        strategy="halving",
        eta=2,
        metric="loss",
        budgets={"steps": 40},
    )
    planned = folder.begin(wanted)
    jobs = tuple(Job(f"{n:03}", {"train.batch": 4 * 2**n}, 10) for n in range(4))
    values = {job.trial: float(n) for n, job in enumerate(jobs)}
    for job in jobs:
        folder.keep_result(job, 0, TrialResult("done", {"progress.loss": values[job.trial], "progress.steps": 10}))
    second = tuple(Job(job.trial, job.settings, 20) for job in jobs[:2])
    folder.keep_rounds([Round(jobs, {trial: -loss for trial, loss in values.items()}), Round(second)])
    folder.keep_result(second[1], 1, TrialResult("failed", why="ended with code 1: boom"))
    found = Driver(folder, planned, LocalExecutor(()), lambda text: None)
    found.running.add("000")
    return found


def test_rows_of_a_sweep_that_goes_on(driver: Driver) -> None:
    rows = report.make(driver).rows
    assert [(each.trial, each.round, each.status) for each in rows] == [
        ("000", 2, "running"),
        ("001", 2, "failed"),
        ("002", 1, "done"),
        ("003", 1, "done"),
    ]
    assert rows[0].history == ((10, 0.0),)
    assert rows[1].score is None
    assert rows[1].why == "ended with code 1: boom"


def test_the_table(driver: Driver) -> None:
    lines = report.table(report.make(driver)).splitlines()
    assert lines[0].split() == ["trial", "batch", "loss", "steps", "games", "minutes", "round"]
    assert lines[1].split() == ["000", "4", "0", "10", "2", "running"]
    assert lines[2].split()[:4] == ["001", "8", "-", "2"]
    assert lines[2].endswith("failed: ended with code 1: boom")
    assert report.table(made()).split() == ["trial", "loss", "steps", "games", "minutes"]


def test_names_are_as_short_as_they_can_be() -> None:
    assert report.short_names(["train.batch", "a.kind", "b.kind"]) == ["batch", "a.kind", "b.kind"]


def test_bars_of_a_few_values_by_hand() -> None:
    rows = (row("0", {"a": 10}, 4.0), row("1", {"a": 2}, 1.0), row("2", {"a": 2}, 2.0), row("3", {"a": 3}, None))
    lines = report.effects(made(*rows)).splitlines()
    assert lines[0] == "loss by a"
    assert lines[1].split() == ["2", "mean", "1.5", "best", "1", "of", "2", "#"]
    assert lines[2].split() == ["10", "mean", "4", "best", "4", "of", "1", "#" * 30]
    assert report.effects(made(rows[0])) == ""
    assert report.effects(made(row("0", {"a": 1}, 1.0), row("1", {"a": 1}, 2.0))) == ""


def test_dots_of_many_numbers() -> None:
    rows = [row(str(n), {"a": 10.0 ** (n / 4)}, float(n)) for n in range(13)]  # three decades, evenly
    lines = report.effects(made(*rows)).splitlines()
    stars = [line.index("*") for line in lines if "*" in line]
    assert stars == sorted(stars, reverse=True)
    assert sum(line.count("*") for line in lines) == 13
    assert lines[-1].split() == ["1", "1000"]


def test_placed() -> None:
    assert report.placed([1.0, 10.0, 100.0]) == pytest.approx([0.0, 0.5, 1.0])
    assert report.placed([0.0, 5.0, 100.0]) == pytest.approx([0.0, 0.05, 1.0])
    assert report.placed([3.0]) == [0.5]


def test_for_programs(driver: Driver) -> None:
    found = json.loads(json.dumps(report.values(report.make(driver))))
    assert found["metric"] == "loss"
    assert found["trials"][0]["settings"] == {"train.batch": 4}
    assert found["trials"][0]["score"] == {"value": 0.0, "error": None}


def test_the_end_says_how_to_run_the_best_again(driver: Driver) -> None:
    said = report.ending(report.make(driver), driver)
    assert "best:      trial 000 (train.batch=4)" in said
    assert "config.yaml --set=train.batch=4 --set=goal.steps=20 --base RUN" in said
    assert report.ending(made(row("0", {}, None)), driver) == "no trial has a score"


def circles(picture: str) -> int:
    return len(ElementTree.fromstring(picture).findall(".//{http://www.w3.org/2000/svg}circle"))


def test_the_picture_is_svg_with_a_point_for_every_trial_and_setting(driver: Driver) -> None:
    rows = (
        row("0", {"a": 1, "b": "x<y&z"}, 1.0, 0.5),
        row("1", {"a": 100, "b": "y"}, 1.0),
        row("2", {"a": 5, "b": None}, 1.0),
        row("3", {"a": 5, "b": [1, "q"]}, None),
    )
    assert circles(svg(made(*rows))) == 6
    assert circles(svg(report.make(driver))) == 3  # of four; no panel of rounds: nobody has two
    two = (row("0", {"a": 1}, 1.0, history=((5, 2.0), (10, 1.0))), row("1", {"a": 2}, 3.0, history=((5, 3.0),)))
    assert circles(svg(made(*two))) == 2 + 3
    assert "no trial has a score yet" in svg(made())
    ElementTree.fromstring(svg(made(row("0", {"a": 1}, None))))


def test_the_words_of_the_picture_show_in_a_viewer_with_one_named_font() -> None:
    picture = svg(made(row("0", {"a": 1}, 1.0), row("1", {"a": 2}, 3.0)))
    bare = re.sub(r"<text.*?</text>", "", picture, flags=re.DOTALL)
    fonts = [font_roboto.font_files["Roboto"]]  # no generic family is mapped to it

    def ink(text: str) -> int:
        image = pixels(resvg_py.svg_to_bytes(svg_string=text, skip_system_fonts=True, font_files=fonts))
        return int((image[..., :3].max(axis=-1) < 128).sum())

    assert ink(picture) > ink(bare) + 100


def test_files_for_people(driver: Driver) -> None:
    report.publish(driver.folder, report.make(driver))
    assert (driver.folder.path / "table.txt").read_text().startswith("trial")
    assert json.loads((driver.folder.path / "results.json").read_text())["strategy"] == "halving"
    ElementTree.parse(driver.folder.path / "plot.svg")


def test_lines_and_a_table_on_a_terminal(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = io.StringIO()
    with report.screen(driver, plain) as say:
        say("hello")
    assert plain.getvalue().endswith(" hello\n")
    metrics = driver.folder.trial("000") / "metrics.jsonl"
    metrics.parent.mkdir(parents=True)
    metrics.write_text('{"time": "t", "elapsed": 90, "kind": "progress", "games": 1204, "steps": 7, "loss": 2.5}\n')
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, width=100, height=30, color_system=None)
    with TerminalDisplay(report.SweepView(), console) as table:
        table.update(driver)
        table.say("hello")
    assert "000: 1.5 minutes, 1,204 games, 7 steps, loss 2.50" in drawn.getvalue()
    assert "hello" in drawn.getvalue()
    assert "running" in drawn.getvalue()


@pytest.mark.parametrize("text", ["", "garbage\n", '{"time": "t", "elapsed": 6, "kind": "session"}\n'])
def test_how_a_run_stands_that_says_little(tmp_path: Path, text: str) -> None:
    (tmp_path / "metrics.jsonl").write_text(text)
    assert report.standing(tmp_path) in ("starting", "0.1 minutes")
