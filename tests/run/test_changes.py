"""Every change of a setting is kept, whenever the process that makes it is killed."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tengen.config import load
from tengen.run import changes, metrics
from tengen.run.changes import SettingChange
from tengen.run.config_file import change, write


def keys(base: Path) -> list[str]:
    return [f"{made.key}={made.new}" for made in changes.read(base)]


def test_killed_before_the_log_is_written_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(load("go9"), tmp_path, ["tengen 1"])
    change(tmp_path, ["train.lr_scale=0.5"])
    with monkeypatch.context() as killed:
        append = changes.append
        killed.setattr(changes, "append", lambda base, comments: None)
        change(tmp_path, ["train.lr_scale=0.3"])
    assert keys(tmp_path) == ["train.lr_scale=0.5", "train.lr_scale=0.3"]
    assert len((tmp_path / changes.NAME).read_text().splitlines()) == 1
    assert append is changes.append
    change(tmp_path, ["train.lr_scale=0.2"])
    assert keys(tmp_path) == ["train.lr_scale=0.5", "train.lr_scale=0.3", "train.lr_scale=0.2"]
    assert len((tmp_path / changes.NAME).read_text().splitlines()) == 3


def test_half_a_line_and_foreign_lines_are_skipped(tmp_path: Path) -> None:
    write(load("go9"), tmp_path, [])
    (tmp_path / changes.NAME).write_text(
        '[]\n{"time": "yesterday", "key": "a", "from": "1", "to": "2", "by": "set"}\n{"ti'
    )
    change(tmp_path, ["goal.minutes=7"])
    assert keys(tmp_path) == ["goal.minutes=7.0"]


def test_changes_that_an_older_version_noted_above_the_configuration(tmp_path: Path) -> None:
    note = "changed 2026-01-31 12:00:00 UTC: goal.minutes: 5.0 -> 6.0"
    write(load("go9", ["goal.minutes=6"]), tmp_path, ["tengen 0", note])
    old = SettingChange("2026-01-31 12:00:00 UTC", "goal.minutes", "5.0", "6.0", "start")
    assert changes.read(tmp_path) == [old]
    change(tmp_path, ["goal.minutes=7"])
    assert changes.read(tmp_path)[0] == old
    assert json.loads((tmp_path / changes.NAME).read_text().splitlines()[0]) == old.values()


def test_the_seconds_of_the_run_at_each_change(tmp_path: Path) -> None:
    notes = [f"set 2026-01-31 12:00:{second} UTC: goal.steps: 1 -> 2" for second in ("07.500", "59")]
    write(load("go9"), tmp_path, ["tengen 1", *notes])
    times = [("00", 0.5), ("05", 5.5), ("10", 10.5)]
    lines = [
        {"time": f"2026-01-31T12:00:{at}.000+00:00", "elapsed": elapsed, "kind": "progress"} for at, elapsed in times
    ]
    (tmp_path / metrics.NAME).write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [elapsed for elapsed, _ in changes.over_time(tmp_path)] == [8.0, 10.5]


def test_a_run_that_was_stopped_does_not_grow_older() -> None:
    day = datetime(2026, 1, 31, tzinfo=UTC)
    times = [(day, 0.0), (day + timedelta(seconds=10), 10.0), (day + timedelta(hours=5), 12.0)]
    moments = (timedelta(seconds=-5), timedelta(seconds=4), timedelta(hours=2), timedelta(hours=9))
    assert [changes.elapsed_at(day + moment, times) for moment in moments] == [0.0, 4.0, 12.0, 12.0]
    assert changes.elapsed_at(day, []) == 0.0
