"""Runs and matches below named folders."""

from pathlib import Path

import pytest

from tengen.errors import TengenError
from tengen.web.folders import FoundRuns


def test_runs_and_matches_below_a_folder(tmp_path: Path) -> None:
    for name in ("a/x", "b/x", "deep/1/2/3/4"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.yaml").touch()
    (tmp_path / "match").mkdir()
    (tmp_path / "match" / "match.json").touch()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "config.yaml").touch()
    found = FoundRuns.of([tmp_path, tmp_path / "a" / "x"])
    assert found.runs == {"x": tmp_path / "a" / "x", "b/x": tmp_path / "b" / "x"}
    assert found.matches == (tmp_path / "match",)


def test_links_do_not_lead_outside(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "config.yaml").touch()
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "outside")
    assert not FoundRuns.of([tmp_path / "inside"]).runs
    (tmp_path / "inside" / "run").mkdir()
    (tmp_path / "inside" / "run" / "config.yaml").symlink_to(tmp_path / "outside" / "config.yaml")
    assert not FoundRuns.of([tmp_path / "inside"]).runs


def test_a_path_that_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(TengenError, match="there is no such folder"):
        FoundRuns.of([tmp_path / "nothing"])
    (tmp_path / "file").touch()
    with pytest.raises(TengenError, match="is a file"):
        FoundRuns.of([tmp_path / "file"])
