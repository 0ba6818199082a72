"""A shuffle holds rows of the window, each at most once, in random order, and is complete or not there."""

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tengen import games
from tengen.config.settings.data import WindowSettings
from tengen.config.settings.parts import ShuffleSettings
from tengen.data.format import chunk
from tengen.data.format.archive import Archive
from tengen.data.format.chunk import read_chunk, write_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.loader.sources import split_of
from tengen.data.shuffle.folders import Shuffle, ShuffledFile, clean, newest
from tengen.data.shuffle.plan import ShuffleMemory, ShufflePlan, ShuffleSource, WindowSurvey, plan, shares
from tengen.data.shuffle.shuffle import ShuffleProgress, shuffle
from tengen.data.store.store import Store
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game
from tests.helpers import paths
from tests.helpers import rows as made
from tests.helpers.katago_files import made_arrays, on_boards, write_arrays
from tests.helpers.patience import eventually

ALL = WindowSettings(min_rows=10**6)  # a window that holds everything
HALF = ShuffleSettings(rows_per_file=10, validation_share=0.5, workers=2)


def add(base: Path, count: int, seed: int, network: str = "net", **other: Any) -> Path:
    """A chunk whose rows can be told apart by their game, which is [seed, row]."""
    path = Store(base / "selfplay").reserve(network)
    rows = made.rows(count, seed)
    rows["game"] = np.stack([np.full(count, seed), np.arange(count)], -1).astype(np.uint32)
    write_chunk(path, made.FORM, rows, **{"game": made.GAME, **other}, network=network)
    return path


def look(base: Path, what: ShuffleSettings = HALF, window: WindowSettings = ALL) -> ShufflePlan:
    return plan(WindowSurvey(Store(base / "selfplay"), made.FORM, made.GAME), what, window)


def make(
    base: Path, what: ShuffleSettings = HALF, window: WindowSettings = ALL, seed: int = 1, **callbacks: Any
) -> Shuffle:
    done = shuffle(look(base, what, window), base, seed, **callbacks)
    assert done is not None
    return done


def as_bytes(rows: dict[str, np.ndarray]) -> list[bytes]:
    """Each row as one string of bytes."""
    return [b"".join(rows[name][i].tobytes() for name in made.FORM.fields) for i in range(len(rows["ply"]))]


def rows_of(files: Iterable[ShuffledFile | Path]) -> list[bytes]:
    paths = [file if isinstance(file, Path) else file.path for file in files]
    return [row for path in paths for row in as_bytes(read_chunk(path, made.FORM, made.GAME)[0])]


def visible(base: Path, folder: str = "shuffled") -> list[str]:
    """What lies there, the empty folder for leases aside."""
    return sorted(path.name for path in (base / folder).glob("*") if path.name != ".owners")


def small(**other: Any) -> ShuffleSettings:
    return ShuffleSettings(**{"rows_per_file": 10, "validation_share": 0.5, "workers": 2, **other})


def test_everything_once_and_each_side_from_its_own_chunks(tmp_path: Path) -> None:
    paths = [add(tmp_path, 7 + n, n, f"net-{n // 3}") for n in range(9)]
    done = make(tmp_path)
    by_hash: dict[str, list[Path]] = {"train": [], "validation": []}
    for path in paths:
        place = int(hashlib.md5(path.name.encode()).hexdigest()[:13], 16) / 2**52
        by_hash["validation" if place >= 0.5 else "train"].append(path)
    assert by_hash["train"]
    assert by_hash["validation"]
    assert Counter(rows_of(done.train)) == Counter(rows_of(by_hash["train"]))
    assert Counter(rows_of(done.validation)) == Counter(rows_of(by_hash["validation"]))
    for files in (done.train, done.validation):
        assert all(file.rows == 10 for file in files[:-1])
        assert [file.path.name for file in files] == [f"{n:05d}.npz" for n in range(len(files))]
    assert rows_of(done.train) != rows_of(by_hash["train"])


def test_what_the_index_says(tmp_path: Path) -> None:
    for n in range(6):
        add(tmp_path, 20, n)
    window = WindowSettings(min_rows=50, growth=0)
    done = make(tmp_path, small(keep_target_rows=30), window, seed=5)
    index = json.loads((done.folder / "index.json").read_text())
    assert index == done.index
    assert (done.total_rows, done.window) == (120, (70, 120))
    assert index["chunks"] == ["0000000003-a.npz", "0000000005-a.npz"]
    assert (done.form, done.game) == (made.FORM, made.GAME)
    assert index["settings"]["keep_target_rows"] == 30
    assert index["window_settings"]["min_rows"] == 50
    assert sum(index["rows"].values()) == 30
    for file in (*done.train, *done.validation):
        content = file.path.read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file.bytes, file.sha256)
        assert read_chunk(file.path)[1].rows == file.rows
    assert sorted(path.name for path in done.folder.iterdir()) == ["index.json", "readers", "train", "validation"]
    assert newest(tmp_path) == done


@settings(max_examples=25)
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=6),
    st.integers(1, 100),
    st.integers(1, 100),
    st.integers(1, 40),
    st.integers(0, 3),
)
def test_a_draw_from_the_newest_rows(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], keep: int, least: int, per_file: int, seed: int
) -> None:
    base = tmp_path_factory.mktemp("run")
    everything = [row for n, size in enumerate(sizes) for row in rows_of([add(base, size, n)])]
    window = WindowSettings(min_rows=least, growth=0)
    what = small(keep_target_rows=keep, rows_per_file=per_file)
    if not everything:
        with pytest.raises(TengenError, match="no rows"):
            make(base, what, window)
        return
    done = make(base, what, window, seed)
    found = rows_of([*done.train, *done.validation])
    assert len(found) == len(set(found)) == min(keep, least, len(everything))
    assert set(found) <= set(everything[-least:])


def test_the_same_rows_whatever_the_memory(tmp_path: Path) -> None:
    for n in range(30):
        add(tmp_path, 400, n)
    found = []
    for memory in (2**20, 2**21, 2**30):
        done = make(tmp_path, small(memory_bytes=memory, rows_per_file=300))
        found.append([Counter(rows_of(done.train)), Counter(rows_of(done.validation))])
    assert found[0] == found[1] == found[2]
    assert sum(found[0][0].values()) + sum(found[0][1].values()) == 12_000


def test_little_memory_makes_several_runs(tmp_path: Path) -> None:
    for n in range(100):
        add(tmp_path, 200, n)
    what = look(tmp_path, small(memory_bytes=2**20, rows_per_file=400))
    assert what.memory.run_rows < what.rows / 2
    assert what.memory.total_bytes <= 2**20
    done = shuffle(what, tmp_path, 0)
    assert done is not None
    assert len(set(rows_of([*done.train, *done.validation]))) == 20_000


@given(
    st.integers(2**20, 2**34),
    st.integers(1, 64),
    st.integers(1, 5000),
    st.integers(1, 10**5),
    st.integers(1, 10**8),
    st.integers(1, 10**6),
)
def test_memory_is_shared_within_its_limit(
    memory: int, workers: int, row_bytes: int, chunk_rows: int, rows: int, per_file: int
) -> None:
    what = small(memory_bytes=memory, workers=workers, rows_per_file=per_file)
    # Rows of a few bytes would spend more on their order than on themselves.
    row_bytes += 20
    size = min(chunk_rows, ShuffleMemory.largest_chunk(what) // row_bytes)
    try:
        shared = ShuffleMemory.shared(what, row_bytes, [ShuffleSource(cast(Any, None), size, size * row_bytes)], rows)
    except OptionError:  # not enough for one file
        assert min(per_file, rows) * 2 * row_bytes > memory / 2
        return
    assert shared.total_bytes <= memory
    assert 1 <= shared.readers <= workers
    assert 1 <= shared.writers <= workers
    assert shared.run_rows >= size


def test_the_same_seed_gives_the_same_files(tmp_path: Path) -> None:
    for n in range(8):
        add(tmp_path, 40, n)

    def hashes(seed: int, workers: int) -> list[str]:
        done = make(tmp_path, small(workers=workers, keep_target_rows=100), seed=seed)
        return [file.sha256 for file in (*done.train, *done.validation)]

    assert hashes(1, 2) == hashes(1, 2)
    assert hashes(1, 2) != hashes(2, 2)


@pytest.mark.slow
def test_every_row_is_as_likely_in_every_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # for speed
    for n in range(4):
        add(tmp_path, 3, n)
    where = np.zeros((12, 12))
    times = 120
    what = look(tmp_path, small(rows_per_file=5, validation_share=0))
    for seed in range(times):
        done = shuffle(what, tmp_path, seed)
        assert done is not None
        games = np.concatenate([read_chunk(file.path)[0]["game"] for file in done.train])
        where[games[:, 0] * 3 + games[:, 1], np.arange(12)] += 1
        clean(tmp_path, small(keep_shuffles=1))
    # 121 degrees of freedom: a fair shuffle gives about 121, and more than 185 once in 10,000 times.
    expected = times / 12
    assert ((where - expected) ** 2 / expected).sum() < 185


def test_shares_of_more_rows_than_numpy_can_draw_from() -> None:
    random = np.random.default_rng(0)
    found = shares([3 * 10**8] * 10, 10**6, random)
    assert found.sum() == 10**6
    assert (abs(found - 10**5) < 3000).all()
    assert shares([2 * 10**9], 7, random).tolist() == [7]


def test_a_dry_run_says_what_it_would_do_and_changes_nothing(tmp_path: Path) -> None:
    for n in range(4):
        add(tmp_path, 20, n)
    bad = add(tmp_path, 20, 4)
    bad.write_bytes(b"")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    text = str(look(tmp_path, window=WindowSettings(min_rows=1000)))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert "80 rows in the run" in text
    assert "waiting for 920 more rows" in text
    assert "4 chunks" in text
    assert f"not used: {bad}" in text


def test_a_chunk_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    survey = WindowSurvey(Store(tmp_path / "selfplay"), made.FORM, made.GAME)
    add(tmp_path, 3, 0)
    plan(survey, HALF, ALL)
    asked = []
    real = chunk.read_meta
    monkeypatch.setattr(chunk, "read_meta", lambda path, *wanted: asked.append(path) or real(path, *wanted))
    second = add(tmp_path, 3, 1)
    assert plan(survey, HALF, ALL).total_rows == 6
    assert asked == [second]


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "cut short":
        path.write_bytes(content[:-50])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "bits":
        changed = bytearray(content)
        changed[len(changed) // 2] ^= 255
        path.write_bytes(changed)
    elif how == "pickle":
        np.savez(path, policy=np.array([{"a": 1}], object), meta=np.zeros(3, np.uint8))
    elif how == "future":
        path.write_bytes(content.replace(b'"schema": 1', b'"schema": 2'))
    elif how == "gone":
        path.unlink()
    elif how == "other game":
        path.unlink()
        write_chunk(path, made.FORM, made.rows(20), made.ELSE, network="net")
    elif how == "other fields":
        path.unlink()
        write_chunk(path, made.PLAIN, made.rows(20, form=made.PLAIN), made.GAME, network="net")
    elif how == "folder":
        path.unlink()
        path.mkdir()


KINDS = ["cut short", "empty", "bits", "pickle", "future", "gone", "other game", "other fields", "folder"]
CORRUPT = KINDS[:5]


@pytest.mark.parametrize("how", KINDS)
@pytest.mark.parametrize("late", [False, True])
def test_bad_chunks_are_named_and_the_others_are_used(tmp_path: Path, how: str, late: bool) -> None:
    paths = [add(tmp_path, 20, n) for n in range(4)]
    good = rows_of([paths[0], paths[1], paths[3]])
    if late:  # it was good when it was looked at
        what = look(tmp_path)
        damage(paths[2], how)
    else:
        damage(paths[2], how)
        what = look(tmp_path)
    done = shuffle(what, tmp_path, 1)
    assert done is not None
    assert Counter(rows_of([*done.train, *done.validation])) == Counter(good)
    if how == "gone" and not late:
        assert done.index["not_used"] == []
        return
    (reason,) = done.index["not_used"]
    assert paths[2].name in reason
    aside = paths[2].with_name(paths[2].name + ".corrupt")
    assert aside.exists() == (how in CORRUPT)
    if how in CORRUPT:
        assert not paths[2].exists()
        assert aside.with_name(aside.name + ".txt").read_text() == f"{reason}\n"
        assert make(tmp_path).index["not_used"] == []


def test_all_chunks_bad(tmp_path: Path) -> None:
    add(tmp_path, 20, 0).write_bytes(b"")
    with pytest.raises(TengenError, match="no rows to shuffle\n.*0000000000-a.npz: not a good chunk"):
        make(tmp_path)
    path = add(tmp_path, 20, 0)
    what = look(tmp_path)
    path.unlink()
    done = shuffle(what, tmp_path, 1)
    assert done is not None
    assert (done.train, done.validation) == ((), ())


def test_chunks_with_more_fields_than_asked_for(tmp_path: Path) -> None:
    add(tmp_path, 20, 0)
    survey = WindowSurvey(Store(tmp_path / "selfplay"), made.PLAIN, made.GAME)
    done = shuffle(plan(survey, HALF, ALL), tmp_path, 1)
    assert done is not None
    files = [*done.train, *done.validation]
    assert all(read_chunk(file.path)[1].form == made.PLAIN for file in files)
    assert sum(file.rows for file in files) == 20


def test_games_without_a_board(tmp_path: Path) -> None:
    form, game = RowFormat((0, 0, 0), 2, 3), GameIdentity("x", 1, {})
    store = Store(tmp_path / "selfplay")
    write_chunk(store.reserve("n"), form, made.rows(20, form=form), game, network="n")
    done = shuffle(plan(WindowSurvey(store, form, game), HALF, ALL), tmp_path, 1)
    assert done is not None
    read = [read_chunk(file.path, form, game)[0] for file in (*done.train, *done.validation)]
    order = np.argsort(np.concatenate([rows["ply"] for rows in read]))
    assert made.same({k: v[order] for k, v in made.joined(*read).items()}, made.rows(20, form=form))


def test_a_chunk_too_large_for_the_memory_is_named(tmp_path: Path) -> None:
    add(tmp_path, 20, 0)
    large = add(tmp_path, 6000, 1)
    what = look(tmp_path, small(memory_bytes=2**20))
    assert what.total_rows == 20
    assert [problem.path for problem in what.problems] == [large]
    assert "memory_bytes" in what.problems[0].reason


def test_a_copied_folder_gives_no_row_twice(tmp_path: Path) -> None:
    for n in range(3):
        add(tmp_path, 20, n)
    shutil.copytree(tmp_path / "selfplay" / "net", tmp_path / "selfplay" / "net-backup")
    done = make(tmp_path)
    found = rows_of([*done.train, *done.validation])
    assert len(found) == len(set(found)) == 60
    assert ["seems to be a copy" in reason for reason in done.index["not_used"]] == [True] * 3


def test_files_too_large_for_the_memory(tmp_path: Path) -> None:
    for n in range(10):
        add(tmp_path, 1000, n)
    what = look(tmp_path, small(memory_bytes=2**20, rows_per_file=10_000))
    with pytest.raises(OptionError, match="rows_per_file"):
        shuffle(what, tmp_path, 1)
    assert "rows_per_file" in str(what)
    assert visible(tmp_path) == []


def test_compressed(tmp_path: Path) -> None:
    add(tmp_path, 500, 0)
    plain, packed = make(tmp_path, small(rows_per_file=500)), make(tmp_path, small(rows_per_file=500, compress=True))
    files = [(*done.train, *done.validation) for done in (plain, packed)]
    assert rows_of(files[0]) == rows_of(files[1])
    assert files[1][0].bytes < files[0][0].bytes


def test_scratch_elsewhere(tmp_path: Path) -> None:
    add(tmp_path, 50, 0)
    (tmp_path / "fast").mkdir()
    seen = []

    def progress(_: ShuffleProgress) -> None:
        seen.extend((tmp_path / "fast").glob("*/000000"))

    make(tmp_path, small(scratch=str(tmp_path / "fast")), progress=progress)
    assert seen
    assert visible(tmp_path, "fast") == []


def test_progress_ends_with_all_rows(tmp_path: Path) -> None:
    for n in range(5):
        add(tmp_path, 20, n)
    seen: list[ShuffleProgress] = []
    make(tmp_path, progress=seen.append)
    reading, writing = ([p for p in seen if p.doing == doing] for doing in ("reading", "writing"))
    for steps in (reading, writing):
        assert [p.rows for p in steps] == sorted(p.rows for p in steps)
        assert (steps[-1].rows, steps[-1].of) == (100, 100)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_stopped(tmp_path: Path, after: int) -> None:
    for n in range(5):
        add(tmp_path, 20, n)
    calls = []
    assert shuffle(look(tmp_path), tmp_path, 1, stop=lambda: calls.append(1) or len(calls) > after) is None
    assert visible(tmp_path) == []
    assert newest(tmp_path) is None


def test_an_error_of_the_caller_leaves_nothing(tmp_path: Path) -> None:
    for n in range(5):
        add(tmp_path, 20, n)

    def progress(_: ShuffleProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, progress=progress)
    assert visible(tmp_path) == []


def no_space(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("where", ["open", "pack", "fsync", "replace", "mkdir", "rename"])
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    for n in range(5):
        add(tmp_path, 20, n)
    targets: dict[str, tuple[Any, str]] = {
        "open": (Path, "open"),
        "pack": (chunk, "pack"),
        "fsync": (os, "fsync"),
        "replace": (Path, "replace"),
        "mkdir": (Path, "mkdir"),
        "rename": (Path, "rename"),
    }
    what = look(tmp_path)
    owner, name = targets[where]
    real: Callable[..., Any] = getattr(owner, name)

    def fail(*args: Any, **options: Any) -> Any:
        reading = where == "open" and not any("x" in str(mode) for mode in args[1:])
        return real(*args, **options) if reading else no_space()

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail)
        with pytest.raises(TengenError, match="No space left on device; make room"):
            shuffle(what, tmp_path, 1)
    assert newest(tmp_path) is None
    assert visible(tmp_path) == []
    done = shuffle(what, tmp_path, 1)  # there is space again
    assert done is not None
    assert len(rows_of([*done.train, *done.validation])) == 100


def test_a_disk_that_is_plainly_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(tmp_path, 20, 0)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=100))
    with pytest.raises(TengenError, match="needs .* and 100 bytes are free"):
        make(tmp_path)


def test_names_sort_by_creation(tmp_path: Path) -> None:
    add(tmp_path, 20, 0)
    names = []
    for _ in range(4):
        done = make(tmp_path)
        names.append(done.name)
        os.utime(done.folder, (0, 0))  # clocks say nothing
        assert newest(tmp_path) == done
    assert names == sorted(names)
    assert len(set(names)) == 4


def test_sides_do_not_depend_on_the_run_and_have_their_share() -> None:
    names = [f"{n:010d}-a.npz" for n in range(10_000)]
    held = [name for name in names if split_of(name, 0.05) == "validation"]
    assert 430 < len(held) < 570
    assert set(held) <= {name for name in names if split_of(name, 0.1) == "validation"}
    assert not [name for name in names if split_of(name, 0) == "validation"]
    assert not [name for name in names if split_of(name, 1) == "train"]


KILLED = """
import sys, time
from pathlib import Path
from tests.data.shuffle.test_shuffle import look
from tengen.data.shuffle.shuffle import shuffle
base, when = Path(sys.argv[1]), sys.argv[2]
def wait(name):
    print("now", flush=True)
    time.sleep(3600)
def progress(step):
    if step.doing == when:
        wait(when)
if when == "index":
    from tengen.data.shuffle import folders as shuffled
    from tengen import files
    real = files.write_bytes
    files.write_bytes = lambda path, data: wait(path) if path.name == "index.json" else real(path, data)
if when == "rename":
    Path.rename = lambda *_: wait("rename")
shuffle(look(base), base, 1, progress)
"""


@pytest.mark.parametrize("when", ["reading", "writing", "index", "rename"])
def test_killed(tmp_path: Path, when: str) -> None:
    for n in range(5):
        add(tmp_path, 20, n)
    old = make(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), when],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths.IMPORTABLE},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"now\n"
    assert clean(tmp_path, HALF) == []  # it is still being made
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert newest(tmp_path) == old
    left = sorted((tmp_path / "shuffled").glob(".*.part"))
    assert len(left) == 2
    assert sorted(clean(tmp_path, HALF)) == left
    assert visible(tmp_path) == [old.name]
    assert not list((tmp_path / "shuffled" / ".owners").iterdir())
    after = make(tmp_path)
    assert after.name > old.name
    assert len(rows_of([*after.train, *after.validation])) == 100


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path: Path) -> None:
    for n in range(5):
        add(tmp_path, 20, n)
    code = (
        "import sys\nfrom pathlib import Path\nfrom tests.data.shuffle.test_shuffle import make\n"
        "while True: make(Path(sys.argv[1]))"
    )
    for delay in (0.0, 0.011, 0.023, 0.05):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": paths.IMPORTABLE},
        )
        began = newest(tmp_path)
        eventually(lambda: newest(tmp_path) != began)
        time.sleep(delay)
        process.kill()
        process.wait()
        for folder in (tmp_path / "shuffled").glob("[0-9]*"):
            done = Shuffle.load(folder)
            assert len(set(rows_of([*done.train, *done.validation]))) == 100
        clean(tmp_path, small(keep_shuffles=1))
        assert len(visible(tmp_path)) == 1


def katago_survey(base: Path, game: Game, limit: int | None = None) -> WindowSurvey:
    return WindowSurvey(Store(base / "selfplay"), RowFormat.of(game), GameIdentity.of(game), limit)


def test_files_of_katago_are_refused_by_their_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = on_boards(made_arrays(4, 5), [(3, 3)] * 2 + [(5, 5)] * 2)
    write_arrays(tmp_path / "selfplay" / "net" / "tdata" / "A.npz", arrays)
    monkeypatch.setattr(Archive, "read", lambda *_: pytest.fail("an array was unpacked"))
    for survey, reason in (
        (katago_survey(tmp_path, games.make("go", size=3)), "need game.observation=katago"),
        (katago_survey(tmp_path, games.make("tic_tac_toe")), "expected the game tic_tac_toe, got go"),
        (katago_survey(tmp_path, games.make("go", size=3, observation="katago"), 3), "max_chunk_rows allows 3"),
    ):
        (problem,) = plan(survey, HALF, ALL).problems
        assert reason in problem.reason


@pytest.mark.parametrize(("side", "rows"), [(19, 1200), (19, 100), (3, 1200)])
def test_memory_for_small_boards_in_files_for_larger_ones(tmp_path: Path, side: int, rows: int) -> None:
    arrays = on_boards(made_arrays(rows, side), [(3, 3)] * rows)
    path = write_arrays(tmp_path / "selfplay" / "net" / "tdata" / "A.npz", arrays)
    game = games.make("go", size=3, observation="katago")
    (source,) = plan(katago_survey(tmp_path, game), HALF, ALL).sources
    read_chunk(path, RowFormat.of(game), GameIdentity.of(game))  # some memory is taken once only
    tracemalloc.start()
    try:
        read_chunk(path, RowFormat.of(game), GameIdentity.of(game))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * source.bytes < 4 * peak, "a reader is given twice the bytes"


def test_files_that_are_used_in_part_are_named_apart(tmp_path: Path) -> None:
    game = games.make("go", size=3, observation="katago")
    arrays = on_boards(made_arrays(12, 5), [(3, 3)] * 8 + [(5, 5)] * 4)
    files = [write_arrays(tmp_path / "selfplay" / "net" / "tdata" / f"{n}.npz", arrays) for n in range(4)]
    for place, path in enumerate(files):
        os.utime(path, ns=(0, 10**9 * (place + 1)))
    what = plan(katago_survey(tmp_path, game), HALF, WindowSettings(min_rows=20, growth=0))
    assert what.problems == ()
    remarks = [f"{path}: 4 of 12 rows are of boards larger than 3x3, and left out" for path in files[1:]]
    assert what.partly_used == remarks, "the oldest is outside the window"
    assert f"used in part: {remarks[0]}" in str(what)
    assert "not used" not in str(what)
    files[2].write_bytes(b"")
    done = shuffle(what, tmp_path, 1)
    assert done is not None
    assert len(done.index["not_used"]) == 1
    assert done.index["partly_used"] == [remarks[0], remarks[2]]
