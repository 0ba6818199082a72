"""Jobs are done in order, in the background, and what goes wrong with them is told."""

import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from tengen import files
from tengen.data.format.chunk import read_chunk, write_chunk
from tengen.data.store.writer import Writer
from tengen.errors import TengenError
from tests.helpers import paths, rows
from tests.helpers.patience import LONG, eventually


def full(path: Path) -> None:
    raise OSError(28, "No space left on device", str(path))


def test_jobs_are_done_in_order() -> None:
    done: list[int] = []
    with Writer(limit=3) as writer:
        for number in range(50):
            writer.put(partial(done.append, number))
    assert done == list(range(50))
    assert writer.waiting == 0


def test_chunks_and_texts(tmp_path: Path) -> None:
    with Writer() as writer:
        for number in range(3):
            path = tmp_path / f"{number}.npz"
            writer.put(partial(write_chunk, path, rows.FORM, rows.rows(9, number), rows.GAME, network="n"), path)
        writer.put(partial(files.write_bytes, tmp_path / "game.sgf", b"(;GM[1])"), tmp_path / "game.sgf")
        writer.flush()
        assert (tmp_path / "game.sgf").read_bytes() == b"(;GM[1])"
    for number in range(3):
        assert rows.same(read_chunk(tmp_path / f"{number}.npz")[0], rows.rows(9, number))


def test_waits_for_room_and_says_how_much_waits() -> None:
    gate, begun = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        gate.wait()

    writer = Writer(limit=2)
    writer.put(hold)
    begun.wait()
    writer.put(hold)
    writer.put(hold)
    assert writer.waiting == 3
    late = threading.Thread(target=writer.put, args=(hold,))
    late.start()
    late.join(0.05)
    assert late.is_alive()  # no room
    assert writer.waiting == 3
    gate.set()
    late.join()
    writer.flush()
    assert writer.waiting == 0
    writer.close()


def test_a_full_disk_is_told_at_the_next_put(tmp_path: Path) -> None:
    done: list[int] = []
    gate = threading.Event()
    writer = Writer()
    writer.put(gate.wait)
    writer.put(partial(full, tmp_path), tmp_path / "x.npz")
    writer.put(partial(done.append, 1))
    gate.set()
    with pytest.raises(TengenError, match=r"x\.npz: cannot be written: No space left on device; make room"):
        writer.flush()
    with pytest.raises(TengenError, match=r"No space left"):
        writer.put(partial(done.append, 2))
    with pytest.raises(TengenError, match=r"No space left"):
        writer.close()
    writer.close()
    assert done == [1]


def test_all_that_failed_is_counted(tmp_path: Path) -> None:
    gate = threading.Event()
    writer = Writer()
    writer.put(gate.wait)
    for number in range(3):
        writer.put(partial(full, tmp_path), f"{number}.npz")
    gate.set()
    with pytest.raises(TengenError, match=r"^0\.npz: .*\(and 2 more files were not written\)"):
        writer.close()


def test_a_put_that_waits_for_room_hears_of_failure(tmp_path: Path) -> None:
    gate = threading.Event()

    def fail() -> None:
        gate.wait()
        full(tmp_path)

    writer = Writer(limit=1)
    writer.put(fail, "x.npz")
    threading.Timer(0.05, gate.set).start()
    with pytest.raises(TengenError, match="No space left"):
        [writer.put(gate.wait) for _ in range(100)]
    with pytest.raises(TengenError, match="No space left"):
        writer.close()


def test_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "fsync", refuse)
    path = tmp_path / "x.npz"
    writer = Writer()
    writer.put(partial(write_chunk, path, rows.FORM, rows.rows(1), rows.GAME, network="n"), path)
    with pytest.raises(TengenError, match=r"x\.npz: cannot be written: Permission denied; change its permissions"):
        writer.close()
    assert list(tmp_path.iterdir()) == []


def test_mistakes_of_the_program_are_not_dressed_up() -> None:
    writer = Writer()
    writer.put(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        writer.close()


def test_an_error_in_the_block_is_not_hidden(tmp_path: Path) -> None:
    done: list[int] = []
    gate = threading.Event()

    def fail() -> None:
        with Writer() as writer:
            writer.put(gate.wait)
            writer.put(partial(full, tmp_path))
            writer.put(partial(done.append, 1))
            gate.set()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert done == [1]


def test_closed() -> None:
    writer = Writer()
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        writer.put(print)
    with pytest.raises(ValueError, match="at least one"):
        Writer(limit=0)


def test_lets_go_of_what_it_has_written() -> None:
    class Large:
        alive = True

        def __del__(self) -> None:
            Large.alive = False

    writer = Writer()
    writer.put(partial(lambda large: None, Large()))
    writer.flush()
    eventually(lambda: not Large.alive)
    writer.close()


_FORGETFUL = """
import sys, time
from pathlib import Path
from tengen.data import Writer
writer = Writer()
def slow(path):
    time.sleep(0.1)
    path.write_text("there")
for name in ("a", "b"):
    writer.put(lambda path=Path(sys.argv[1]) / name: slow(path), name)
if len(sys.argv) > 2:
    raise SystemExit(sys.argv[2])
"""


@pytest.mark.parametrize("rest", [[], ["ended"]])
def test_programs_that_forget_to_close(tmp_path: Path, rest: list[str]) -> None:
    environment = os.environ | {"PYTHONPATH": paths.IMPORTABLE}
    command = [sys.executable, "-c", _FORGETFUL, str(tmp_path), *rest]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONG, check=False)
    assert ended.returncode == len(rest)
    assert ended.stderr.split() == rest
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_failure_at_the_very_end_is_one_line(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": paths.IMPORTABLE}
    command = [sys.executable, "-c", _FORGETFUL, str(tmp_path / "absent")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONG, check=False)
    assert ended.stderr.startswith("tengen: a: cannot be written: No such file or directory")
    assert ended.stderr.count("\n") == 1


def test_without_a_thread_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with Writer() as writer:
        monkeypatch.setattr(writer._thread, "submit", none)
        with pytest.raises(RuntimeError, match="new thread"):
            writer.put(lambda: None)
        writer.flush()
        assert not writer.waiting
