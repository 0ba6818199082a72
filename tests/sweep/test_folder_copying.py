"""Copies of run directories."""

import os
import shutil
from pathlib import Path

import pytest

from tengen.errors import TengenError
from tengen.sweep.folder import copy_run, replace_run, restore_runs


@pytest.fixture
def run(tmp_path: Path) -> Path:
    files = {
        "config.yaml": "old",
        ".lock": "process 1",
        "metrics.jsonl": "{}\n",
        "ratings/results.jsonl": "{}\n",
        "selfplay/net/00.npz": "rows",
        "selfplay/net/.01.npz.ab.part": "half",
        "train/main/step_1/config.yaml": "not the run's",
    }
    for name, text in files.items():
        path = tmp_path / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "run"


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_what_was_learned_without_what_is_of_the_other_run(run: Path) -> None:
    copy = run.parent / "trials" / "copy"
    copy_run(run, copy)
    assert names(copy) == {"metrics.jsonl", "selfplay/net/00.npz", "train/main/step_1/config.yaml"}
    assert os.path.samefile(run / "selfplay/net/00.npz", copy / "selfplay/net/00.npz")
    with (copy / "metrics.jsonl").open("a") as file:
        file.write("more\n")
    assert (run / "metrics.jsonl").read_text() == "{}\n"


def test_a_disk_without_links(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*paths: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    copy_run(run, run.parent / "copy")
    assert (run.parent / "copy/selfplay/net/00.npz").read_text() == "rows"


def test_a_copy_is_complete_or_absent(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy, whole = run.parent / "copy", shutil.copy2
    calls = []

    def fail(source: str, target: str) -> str:
        calls.append(source)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return whole(source, target)

    monkeypatch.setattr(shutil, "copy2", fail)
    with pytest.raises(TengenError, match="cannot be copied to .*No space left"):
        copy_run(run, copy)
    assert sorted(path.name for path in run.parent.iterdir()) == ["run"]
    # One that was killed leaves a part behind, which the next removes.
    (run.parent / ".copy.0123.part").mkdir()
    copy_run(run, copy)
    assert sorted(path.name for path in run.parent.iterdir()) == ["copy", "run"]
    (copy / "metrics.jsonl").write_text("went on\n")
    copy_run(run, copy)
    assert (copy / "metrics.jsonl").read_text() == "went on\n"


def test_nothing_to_copy(tmp_path: Path) -> None:
    with pytest.raises(TengenError, match="cannot be copied"):
        copy_run(tmp_path / "none", tmp_path / "copy")
    assert not list(tmp_path.iterdir())


def test_a_run_in_the_place_of_another(tmp_path: Path) -> None:
    old, new = tmp_path / "007", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "what").write_text(folder.name)
    replace_run(new, old)
    assert (old / "what").read_text() == "new"
    assert names(tmp_path) == {"007/what"}


def test_killed_while_a_run_takes_the_place_of_another(tmp_path: Path) -> None:
    (tmp_path / ".007.before").mkdir()
    (tmp_path / ".007.before" / "what").write_text("old")
    restore_runs(tmp_path)
    assert names(tmp_path) == {"007/what"}
    (tmp_path / ".007.before").mkdir()  # killed a little later: the new one is there
    restore_runs(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["007"]


def test_a_run_that_cannot_take_the_place_leaves_the_other(tmp_path: Path) -> None:
    (tmp_path / "007").mkdir()
    with pytest.raises(FileNotFoundError):
        replace_run(tmp_path / "none", tmp_path / "007")
    assert [path.name for path in tmp_path.iterdir()] == ["007"]
