"""Leases of living and dead processes."""

from pathlib import Path

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
