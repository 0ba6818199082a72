"""Which network of a run that grows has the newest checkpoints."""

from pathlib import Path

import pytest

from tengen.run import grown


def test_a_run_that_has_not_grown(tmp_path: Path) -> None:
    assert grown.times_grown(tmp_path / "missing") == 0
    (tmp_path / "step_000000010").mkdir()
    assert grown.times_grown(tmp_path) == 0
    assert grown.folder(tmp_path, 0) == tmp_path


@pytest.mark.parametrize("left", ["step_000000010.corrupt", "step_000000010.orbax-tmp-1", "metrics", None])
def test_a_folder_without_a_complete_checkpoint_does_not_count(tmp_path: Path, left: str | None) -> None:
    (grown.folder(tmp_path, 1) / "step_000000010").mkdir(parents=True)
    (grown.folder(tmp_path, 2) / (left or "")).mkdir(parents=True)
    assert grown.times_grown(tmp_path) == 1
    (grown.folder(tmp_path, 2) / "step_000000020").mkdir()
    assert grown.times_grown(tmp_path) == 2


def test_other_names_and_files_are_passed_over(tmp_path: Path) -> None:
    for name in ("grown-0", "grown-x", "grown-1b", "start"):
        (tmp_path / name / "step_000000010").mkdir(parents=True)
    (tmp_path / "grown-3").write_text("a file")
    assert grown.times_grown(tmp_path) == 0
