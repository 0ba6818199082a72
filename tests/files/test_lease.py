"""Leases of living and dead processes."""

import os
import tempfile
from pathlib import Path

import pytest

from tengen.files import lease
from tengen.files.lease import LeaseWatch


def test_a_process_with_the_number_of_a_dead_one(tmp_path: Path) -> None:
    with lease.held(tmp_path / "readers", "x"):
        (path,) = (tmp_path / "readers").iterdir()
        assert LeaseWatch(1).living(tmp_path / "readers") == [path]
        what, machine, process, _ = path.name.split("~")
        path.rename(path.with_name(f"{what}~{machine}~{process}~1.lease"))
        assert LeaseWatch(1).living(tmp_path / "readers") == []


def test_a_holder_gives_signs_of_life(tmp_path: Path) -> None:
    with lease.held(tmp_path / "readers", "x", beat=0.001):
        (path,) = (tmp_path / "readers").iterdir()
        seen = {path.stat().st_mtime_ns}
        while len(seen) < 4:
            seen.add(path.stat().st_mtime_ns)
    assert not path.exists()


def test_temporary_folders_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with lease.temporary("gate") as first:
        ours = Path(first).name
        left = [ours.replace(f"~{os.getpid()}~", "~999999999~"), ours.replace(lease._started(os.getpid()), "1")]
        other = [left[0].replace("gate", "rating"), left[0].replace(lease._machine(), "0" * 16), "tengen-gate-mine"]
        for name in (*left, *other):
            (tmp_path / name / "games").mkdir(parents=True)
        with lease.temporary("gate") as second:
            assert sorted(path.name for path in tmp_path.iterdir()) == sorted((ours, Path(second).name, *other))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(other)
