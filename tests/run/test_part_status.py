"""The status files of parts: while they live, and when they were killed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen import files
from tengen.run import part_status
from tengen.run.part import Progress, waiting
from tengen.run.part_status import FOLDER, StatusWriter, look, sweep
from tests.helpers.patience import LONG, eventually


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_status, "_BEAT", 0.01)


def until(base: Path, words: str) -> Any:
    return eventually(lambda: [seen for seen in look(base) if seen.words == words], lambda: look(base))[0]


def test_what_is_shown_is_seen(tmp_path: Path) -> None:
    with StatusWriter(tmp_path, "train", "main") as notice:
        assert until(tmp_path, "starting").alive
        notice.show(waiting("5 of 20 rows", 5, 20, steps=3))
        seen = until(tmp_path, "5 of 20 rows")
        assert (seen.part, seen.waiting, seen.done, seen.of, seen.figures) == ("train main", True, 5, 20, {"steps": 3})
        assert seen.alive
        notice.show(Progress("learning"))
        assert not until(tmp_path, "learning").waiting
    assert look(tmp_path) == []
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_since_when_it_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    notice = StatusWriter(tmp_path, "train", "main")
    notice.show(waiting("1 of 20 rows"))
    now = 130.0
    notice.show(waiting("7 of 20 rows"))
    assert notice.seconds == 30, "the same is waited for"
    notice.show(waiting("the first shuffle"))
    assert notice.seconds == 0
    now = 150.0
    notice.show(Progress("the first shuffle"))
    assert notice.seconds == 0, "now it works"


def test_the_order_is_that_of_the_ring(tmp_path: Path) -> None:
    parts = [("gate", "gate"), ("train", "b"), ("selfplay", "x1"), ("train", "a"), ("shuffle", "shuffle")]
    opened = [StatusWriter(tmp_path, *part) for part in parts]
    for each in opened:
        each.__enter__()
    for _, name in parts:
        eventually(lambda: any(seen.name == name for seen in look(tmp_path)))
    try:
        found = [seen.part for seen in look(tmp_path)]
        assert found == ["selfplay x1", "shuffle", "train a", "train b", "gate"]
    finally:
        for each in opened:
            each.__exit__()


KILLED = """
import os, sys, time
from pathlib import Path
from tengen.run.part_status import StatusWriter
with StatusWriter(Path(sys.argv[1]), "gate", "gate"):
    while not (Path(sys.argv[1]) / "parts" / "gate-gate.json").exists():
        time.sleep(0.01)
    os._exit(9)
"""


def test_one_that_was_killed_is_seen_and_swept(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], timeout=LONG, check=False)
    (seen,) = look(tmp_path)
    assert (seen.part, seen.alive) == ("gate", False)
    with StatusWriter(tmp_path, "train", "main"):
        assert [seen.part for seen in look(tmp_path) if seen.kind == "gate"] == []
        until(tmp_path, "starting")
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_the_living_are_not_swept(tmp_path: Path) -> None:
    with StatusWriter(tmp_path, "train", "main"):
        until(tmp_path, "starting")
        sweep(tmp_path / FOLDER)
        assert len(look(tmp_path)) == 1


def test_a_part_from_before_a_restart_of_the_machine(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    with StatusWriter(tmp_path, "train", "main"):
        until(tmp_path, "starting")
        text = (folder / "train-main.json").read_text()
        (held,) = folder.glob("*.lease")
        what, _, process, start = held.name.split("~")
    (folder / "train-main.json").write_text(text)
    elsewhere = folder / f"{what}~{'0' * 16}~{process}~{start}"
    elsewhere.touch()

    def written(seconds_ago: float) -> None:
        then = time.time() - seconds_ago
        os.utime(folder / "train-main.json", (then, then))

    for seconds_ago, alive in ((10, True), (400, False)):
        written(seconds_ago)
        assert [seen.alive for seen in look(tmp_path)] == [alive]
        sweep(folder)
        assert elsewhere.exists(), "a clock may be wrong"
    written(100_000)
    sweep(folder)
    assert list(folder.iterdir()) == []


def test_garbage_is_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "train-a.json").write_text("[1, 2")
    (folder / "train-b.json").write_text(json.dumps({"schema": 1}))
    (folder / "train-c.json").write_text("null")
    (folder / "cook-d.json").write_text("{}")
    (folder / "train-e.json").mkdir()
    assert look(tmp_path) == []
    assert look(tmp_path / "nothing") == []


def test_not_being_able_to_write_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[bytes] = []

    def fail(path: Path, content: bytes) -> None:
        failed.append(content)
        raise OSError(28, "No space left on device")

    with StatusWriter(tmp_path, "train", "main") as notice:
        with monkeypatch.context() as patch:
            patch.setattr(files, "write_bytes", fail)
            notice.show(Progress("one"))
            eventually(lambda: any(b'"one"' in content for content in failed))
        notice.show(Progress("two"))
        until(tmp_path, "two")
    (tmp_path / "file").write_text("")
    with StatusWriter(tmp_path / "file", "train", "main") as notice:
        notice.show(Progress("one"))


@pytest.mark.parametrize("figure", [float("nan"), np.float32(1), object()])
def test_figures_that_cannot_be_written_do_not_silence_it(
    tmp_path: Path, figure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Progress] = []
    write = StatusWriter._write
    monkeypatch.setattr(StatusWriter, "_write", lambda writer: (write(writer), tried.append(writer._progress)))
    with StatusWriter(tmp_path, "train", "main") as notice:
        notice.show(Progress("odd", figures={"loss": figure}))
        eventually(lambda: [progress.words for progress in tried[-3:]] == ["odd"] * 3)
        notice.show(Progress("even"))
        until(tmp_path, "even")


def test_names(tmp_path: Path) -> None:
    for kind, name in (("cook", "a"), ("train", ""), ("train", "a/b"), ("train", "a b")):
        with pytest.raises(ValueError, match="no name for a part"):
            StatusWriter(tmp_path, kind, name)


def test_the_nodes_of_a_cluster_are_parts(tmp_path: Path) -> None:
    node = {"words": "playing", "waiting": False, "seconds": 2.0, "figures": {"games": 3}, "restarts": 1}
    with StatusWriter(tmp_path, "cluster", "cluster") as notice:
        notice.show(Progress("learning", figures={part_status.NODES: {"box": node, "bad": {"words": 1}}}))
        until(tmp_path, "learning")
        driver, box = look(tmp_path)
    assert (driver.kind, box.part, box.words, box.restarts) == ("cluster", "node box", "playing", 1)
    assert (box.figures, box.alive) == ({"games": 3}, True)
