"""A full disk: every part says so, leaves nothing half-written, and goes on when there is space again.

For real in a tiny file system of its own, where this system lets us mount one; and simulated, where all that is written
by `tengen.files.atomic` fails.
"""

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tengen import files
from tengen.data.shuffle.folders import newest
from tengen.errors import TengenError
from tengen.loop.parts import export, running, selfplay
from tengen.loop.parts.export import ExportPart
from tengen.loop.parts.selfplay import SelfplayPart
from tengen.run import networks
from tengen.run.part import Part, Progress
from tests.helpers import spoiled_files
from tests.helpers.patience import LONG, eventually
from tests.helpers.pipeline_data import Gate, names, put
from tests.helpers.run_audit import audit
from tests.helpers.spoiled_files import fill, shuffler, trainer
from tests.helpers.tiny_runs import never

SIZE = "3M"


class Disk:
    """A run directory on a disk that can be filled."""

    def __init__(self, base: Path, fill: Callable[[], object], free: Callable[[], object]) -> None:
        self.base, self.fill, self.free = base, fill, free


@pytest.fixture(params=["simulated", "mounted"])
def disk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    if request.param == "mounted":
        with _mounted(tmp_path / "disk") as made:
            yield made
        return
    write = files.write_bytes

    def full(path: Path, data: bytes) -> None:
        raise files.cannot_write(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)))

    yield Disk(
        tmp_path,
        lambda: monkeypatch.setattr(files, "write_bytes", full),
        lambda: monkeypatch.setattr(files, "write_bytes", write),
    )


@contextlib.contextmanager
def _mounted(place: Path) -> Iterator[Disk]:
    place.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(place)]
    if not shutil.which("mount") or subprocess.run(line, capture_output=True, timeout=LONG).returncode:
        pytest.skip("file systems may not be mounted here")
    filler = place / "filler"

    def fill_up() -> None:
        with filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    try:
        yield Disk(place / "run", fill_up, filler.unlink)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True, capture_output=True, timeout=LONG)


def until_full(part: Part, most: int = 40) -> Progress:
    """Call it until it says that it waits for space."""
    for _ in range(most):
        progress = running.attempt(part.run_once)
        if "space" in progress.words:
            assert not progress.worked
            return progress
        assert progress.worked, progress.words
    raise AssertionError("it never waits for space")


def visible(folder: Path) -> list[str]:
    return [name for name in names(folder.parent, folder.name) if not name.startswith(".")]


def parts_left(base: Path) -> list[Path]:
    """Files and folders that are not complete."""
    return list(base.rglob("*.part"))


def test_the_shuffle(disk: Disk) -> None:
    fill(disk.base)
    said: list[str] = []
    part = shuffler(disk.base, said)
    disk.fill()
    assert "space" in until_full(part).words
    assert visible(disk.base / "shuffled") == []
    assert parts_left(disk.base) == []
    disk.free()
    assert part.run_once().worked
    assert newest(disk.base) is not None
    assert audit(disk.base).problems == []


def test_a_shuffle_for_which_there_is_plainly_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path)
    part = shuffler(tmp_path, [])
    usage = shutil.disk_usage(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10))
        words = until_full(part).words
        assert "10 bytes are free" in words
        assert "space on the disk" in words
    assert part.run_once().worked


def test_the_trainer(disk: Disk) -> None:
    fill(disk.base, 20)
    said: list[str] = []
    shuffler(disk.base, said).run_once()
    part = trainer(disk.base, said)
    try:
        assert running.attempt(part.run_once).worked
        disk.fill()
        until_full(part)
        for _ in range(3):
            running.attempt(part.run_once)
        assert parts_left(disk.base / "train" / "main" / "export") == []
        disk.free()
        spoiled_files.until_it_waits(part)
        part.flush()
        epochs, step = part._state.epoch, part.trainer.step
    finally:
        part.close()
    assert epochs >= 2
    assert len(visible(disk.base / "train" / "main" / "export")) == epochs, "each epoch is handed on"
    found = audit(disk.base)
    assert found.problems == []
    assert (found.steps, found.epochs) == (step, epochs)
    log = (disk.base / "train" / "main" / "metrics.jsonl").read_text()
    assert [log.count(f'"epoch": {number},') for number in range(1, epochs + 1)] == [1] * epochs


@pytest.mark.slow
def test_the_last_checkpoint_of_a_trainer_that_ends(tmp_path: Path) -> None:
    with _mounted(tmp_path / "disk") as disk:
        fill(disk.base, 20)
        said: list[str] = []
        shuffler(disk.base, said).run_once()
        more = ("train.checkpoints.interval=1000", "ring.samples_per_epoch=1000000")
        part = trainer(disk.base, said, *more)
        try:
            spoiled_files.until_it_waits(part)
            disk.fill()
            for _ in range(2):
                with pytest.raises(TengenError) as error:
                    part.flush()
                assert running.is_full(error.value)
            disk.free()
            part.flush()
            step = part.trainer.step
        finally:
            part.close()
        assert [path.name for path in (disk.base / "train" / "main").glob("step_?????????")] == [f"step_{step:09d}"]
        again = trainer(disk.base, said, *more)
        assert again.trainer.step == step
        again.close()


def test_the_export(disk: Disk, saved: list[Path]) -> None:
    left = disk.base / "train" / "main" / export.PENDING / networks.name_of("run", "main", 100, 300)
    shutil.copytree(saved[0].parent, left)
    said: list[str] = []
    part = ExportPart(spoiled_files.ring_config(), disk.base, never, said.append)
    disk.fill()
    until_full(part)
    assert visible(disk.base / "candidates") == []
    assert parts_left(disk.base) == []
    assert left.exists(), "what a trainer left is good, and stays"
    assert said == []
    disk.free()
    assert part.run_once().worked
    assert names(disk.base, "candidates") == [left.name]
    assert not left.exists()


def test_the_gate(disk: Disk, saved: list[Path]) -> None:
    put(disk.base, networks.ACCEPTED, 100, saved[0], accepted=True, number=1)
    put(disk.base, networks.CANDIDATES, 200, saved[1])
    gate = Gate(disk.base, "gate.share=0.01")
    disk.fill()
    until_full(gate.part)
    played = gate.part._figures["games"]
    until_full(gate.part)
    assert parts_left(disk.base) == []
    assert len(names(disk.base, "candidates")) == 1
    disk.free()
    gate.run()
    assert gate.part._figures["games"] == played, "games that were played are kept"
    assert len(names(disk.base, "models")) == 2
    assert names(disk.base, "candidates") == []


def test_self_play(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selfplay, "_RETRY", 0.05)
    said: list[str] = []
    part = SelfplayPart(spoiled_files.ring_config("data.chunk_rows=20"), disk.base, never, said.append)
    try:
        while not part.rows:
            part.run_once()
        part.flush()
        before = audit(disk.base).rows
        assert before == part.rows
        disk.fill()
        words = until_full(part, most=1000).words
        assert words.startswith("space on the disk: ")
        assert str(disk.base) in words
        with pytest.raises(TengenError) as error:
            part.flush()
        assert running.is_full(error.value), "it does not wait in silence"
        assert parts_left(disk.base) == []
        disk.free()
        eventually(lambda: running.attempt(part.run_once).worked)
        part.flush()
        found = audit(disk.base)
        assert found.problems == []
        assert found.rows == part.rows > before, "nothing is lost"
    finally:
        part.close()


def test_self_play_that_is_stopped_while_the_disk_is_full_says_what_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    writer = selfplay.PatientWriter(lambda: bool(asked))

    def job() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a.npz")

    writer.put(job, tmp_path / "a.npz")
    with pytest.raises(TengenError):
        writer.flush()
    asked.append(True)
    with pytest.raises(TengenError, match=r"a\.npz.*No space left"):
        writer.flush()
    with pytest.raises(TengenError, match=r"a\.npz"):
        writer.close()
