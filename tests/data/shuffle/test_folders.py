"""Shuffles are removed when nobody reads them any more, and never before."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tengen import files
from tengen.config.settings.data import WindowSettings
from tengen.config.settings.parts import ShuffleSettings
from tengen.data.format.chunk import write_chunk
from tengen.data.shuffle import folders
from tengen.data.shuffle.folders import Shuffle, ShuffleGone, clean, newest
from tengen.data.shuffle.plan import WindowSurvey, plan
from tengen.data.shuffle.shuffle import shuffle
from tengen.data.store.store import Store
from tengen.errors import TengenError
from tengen.files.lease import LeaseWatch
from tests.helpers import paths, rows

ONE = ShuffleSettings(keep_shuffles=1, workers=1)
OTHER = "0000~0123456789abcdef~77~88.lease"  # what a process on another machine might have left


class Clock:
    """A clock that is set by hand, in seconds."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def make(base: Path) -> Shuffle:
    store = Store(base / "selfplay")
    if not store.chunks():
        write_chunk(store.reserve("net"), rows.FORM, rows.rows(20), rows.GAME, network="net")
    done = shuffle(plan(WindowSurvey(store, rows.FORM, rows.GAME), ONE, WindowSettings()), base, 1)
    assert done is not None
    return done


def test_the_newest_are_kept(tmp_path: Path) -> None:
    made_ = [make(tmp_path) for _ in range(5)]
    assert clean(tmp_path, ShuffleSettings(keep_shuffles=3)) == [made_[0].folder, made_[1].folder]
    assert clean(tmp_path, ShuffleSettings(keep_shuffles=3)) == []
    assert [done.folder.exists() for done in made_] == [False, False, True, True, True]


def test_nothing_there(tmp_path: Path) -> None:
    assert newest(tmp_path) is None
    assert clean(tmp_path, ONE) == []
    assert not list(tmp_path.iterdir())


def test_what_is_read_stays(tmp_path: Path) -> None:
    old = make(tmp_path)
    with old.open() as reading:
        make(tmp_path)
        assert clean(tmp_path, ONE) == []
        assert all(file.path.exists() for file in reading.train)
        with old.open():  # two readers in one process
            pass
        assert clean(tmp_path, ONE) == []
    assert clean(tmp_path, ONE) == [old.folder]
    with pytest.raises(ShuffleGone), old.open():
        pass
    assert not old.folder.exists()


def test_a_killed_reader_is_recognised(tmp_path: Path) -> None:
    old = make(tmp_path)
    code = f"""
import time
from pathlib import Path
from tengen.data.shuffle.folders import Shuffle
with Shuffle.load(Path({str(old.folder)!r})).open():
    print("reading", flush=True)
    time.sleep(3600)
"""
    source = paths.IMPORTABLE
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": source}
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"reading\n"
    make(tmp_path)
    assert clean(tmp_path, ONE) == []
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert clean(tmp_path, ONE) == [old.folder]


def test_readers_on_other_machines(tmp_path: Path) -> None:
    old = make(tmp_path)
    make(tmp_path)
    clock = Clock()
    watch = LeaseWatch(20, clock)
    path = old.folder / "readers" / OTHER
    path.touch()
    os.utime(path, (0, 0))  # long ago by any clock, which says nothing
    for beat in range(1, 4):  # it lives
        assert clean(tmp_path, ONE, watch) == []
        clock.now += 19 * 60
        assert clean(tmp_path, ONE, watch) == []
        os.utime(path, (beat, beat))
    assert clean(tmp_path, ONE, watch) == []
    clock.now += 19 * 60
    assert clean(tmp_path, ONE, watch) == []
    assert clean(tmp_path, ONE) == []  # who has not watched cannot know
    clock.now += 2 * 60
    assert clean(tmp_path, ONE, watch) == [old.folder]


def test_who_comes_while_it_is_removed_is_sent_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = make(tmp_path)
    new = make(tmp_path)
    seen = []
    real = files.remove

    def comes(path: Path) -> bool:
        if path == old.folder:
            with pytest.raises(ShuffleGone), old.open():
                pass
            seen.append(path)
        return real(path)

    monkeypatch.setattr(files, "remove", comes)
    assert clean(tmp_path, ONE) == seen == [old.folder]
    assert newest(tmp_path) == new


def test_who_comes_just_before_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = make(tmp_path)
    make(tmp_path)
    real = Path.touch
    readers = []

    def comes(path: Path, *args: object, **options: object) -> None:
        if path.name == "removing" and not readers:
            reader = old.open()
            reader.__enter__()
            readers.append(reader)
        real(path)

    monkeypatch.setattr(Path, "touch", comes)
    assert clean(tmp_path, ONE) == []
    assert len(readers) == 1
    assert Shuffle.load(old.folder) == old
    readers[0].__exit__(None, None, None)
    assert clean(tmp_path, ONE) == [old.folder]


@pytest.mark.parametrize("done", ["marked", "index gone", "some files gone"])
def test_a_removal_that_was_cut_short_is_finished(tmp_path: Path, done: str) -> None:
    old, new = make(tmp_path), make(tmp_path)
    (new.folder / "removing").touch()
    if done != "marked":
        (new.folder / "index.json").unlink()
    if done == "some files gone":
        new.train[0].path.unlink()
    assert newest(tmp_path) == old
    assert clean(tmp_path, ONE) == [new.folder]
    assert newest(tmp_path) == old


@pytest.mark.parametrize("index", [b"", b"{", b"[]", b"{}", b"null", b'{"schema": 2}', b'{"schema": 1, "train": 3}'])
def test_an_index_that_is_none(tmp_path: Path, index: bytes) -> None:
    old, new = make(tmp_path), make(tmp_path)
    (new.folder / "index.json").write_bytes(index)
    with pytest.raises(TengenError, match=r"index.json: not the index of a shuffle"):
        Shuffle.load(new.folder)
    assert newest(tmp_path) == old


def test_abandoned_scratch_files_elsewhere(tmp_path: Path) -> None:
    fast = tmp_path / "fast"
    mine, other = fast / ".00000000-01234567-scratch.part", fast / ".00000001-89abcdef-scratch.part"
    for folder in (mine, other, fast / ".owners", fast / "precious"):
        folder.mkdir(parents=True)
    (mine / "000000").write_bytes(b"rows")
    lives = fast / ".owners" / f"00000001-89abcdef-scratch{OTHER[4:]}"
    lives.touch()
    what = ShuffleSettings(scratch=str(fast))
    assert clean(tmp_path, what) == [mine]
    assert other.exists()
    assert lives.exists()
    assert (fast / "precious").exists()


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    for name in ("notes", "00000000", "00000000-xyz", ".hidden"):
        (tmp_path / "shuffled" / name).mkdir(parents=True)
    done = make(tmp_path)
    assert clean(tmp_path, ONE) == []
    assert newest(tmp_path) == done
    assert len(list((tmp_path / "shuffled").iterdir())) == 6


def test_a_stray_number_is_not_counted_on_from(tmp_path: Path) -> None:
    for name in ("00000003-01234567", "99999999-01234567"):
        (tmp_path / "shuffled" / name).mkdir(parents=True)
    assert folders.new_name(tmp_path).startswith("00000004-")
