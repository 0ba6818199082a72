"""The shuffle as a part: when it works, what it says, and what it removes."""

from pathlib import Path

from tengen.data.format.chunk import read_chunk
from tengen.data.shuffle.folders import newest
from tests.helpers.pipelines import add_rows, drive, shuffled, shuffler
from tests.helpers.tiny_runs import after


def folders(base: Path) -> list[str]:
    folder = base / "shuffled"
    return sorted(path.name for path in folder.iterdir() if path.name[0] != ".") if folder.exists() else []


def test_it_waits_for_the_first_rows(tmp_path: Path) -> None:
    said: list[str] = []
    part = shuffler(tmp_path, said)
    assert part.run_once().words == "0 of 50 rows until the first shuffle"
    add_rows(tmp_path, 20, 1)
    progress = part.run_once()
    assert progress.words == "20 of 50 rows until the first shuffle"
    assert (progress.worked, progress.done, progress.of, progress.share) == (False, 20, 50, 0.4)
    assert folders(tmp_path) == said == []


def test_and_then_for_new_ones(tmp_path: Path) -> None:
    part = shuffler(tmp_path, [], "ring.shuffle_rows=30")
    add_rows(tmp_path, 60, 1)
    add_rows(tmp_path, 10, 2, "validation")
    progress = part.run_once()
    (name,) = folders(tmp_path)
    assert progress.words == f"shuffled 60 rows to train with and 10 to validate with: {name}"
    assert progress.event
    assert not progress.ended
    assert progress.figures == {"shuffle": name, "rows": 70}
    add_rows(tmp_path, 29, 3)
    progress = part.run_once()
    assert (progress.words, progress.worked) == ("29 of 30 new rows until the next shuffle", False)
    add_rows(tmp_path, 1, 4)
    assert part.run_once().event
    assert newest(tmp_path).total_rows == 100
    again = shuffler(tmp_path, [], "ring.shuffle_rows=30")
    assert again.run_once().words == "0 of 30 new rows until the next shuffle", "another process knows it too"


def test_one_shuffle_is_one_however_quickly_rows_come(tmp_path: Path) -> None:
    add_rows(tmp_path, 60, 1)
    part = shuffler(tmp_path, [], "ring.shuffle_rows=1000", single=True)
    part.show = lambda _: add_rows(tmp_path, 1, 100 + len(list((tmp_path / "selfplay" / "random").iterdir())))
    assert drive(part).ended
    assert len(folders(tmp_path)) == 1
    assert drive(part).ended
    assert len(folders(tmp_path)) == 2, "one row is enough"


def test_rows_of_the_window_are_drawn(tmp_path: Path) -> None:
    add_rows(tmp_path, 100, 1)
    add_rows(tmp_path, 60, 2)
    window = ("data.window.min_rows=60", "data.window.growth=0.01", "data.window.scale=60")
    made = shuffled(tmp_path, *window, "shuffle.keep_target_rows=40")
    games = [tuple(map(int, game)) for file in made.train for game in read_chunk(file.path)[0]["game"]]
    assert len(games) == len(set(games)) == 40
    assert made.window[1] == made.total_rows == 160
    width = made.window[1] - made.window[0]
    assert 60 <= width < 100
    oldest = 100 - (width - 60)  # of the first chunk, the rows before this one are outside
    assert all(seed == 2 or number >= oldest for seed, number in games)


def test_old_ones_are_removed_unless_somebody_reads_them(tmp_path: Path) -> None:
    said: list[str] = []
    part = shuffler(tmp_path, said, "shuffle.keep_shuffles=1")
    add_rows(tmp_path, 60, 1)
    part.run_once()
    first = newest(tmp_path)
    with first.open():
        for seed in (2, 3):
            add_rows(tmp_path, 5, seed)
            part.run_once()
        assert first.folder.exists()
        assert len(folders(tmp_path)) == 2
    add_rows(tmp_path, 5, 4)
    part.run_once()
    assert len(folders(tmp_path)) == 1
    assert f"removed, since it is no longer read: {first.folder}" in said


def test_a_spoiled_chunk_is_named_once(tmp_path: Path) -> None:
    said: list[str] = []
    add_rows(tmp_path, 60, 1)
    bad = add_rows(tmp_path, 60, 2)
    bad.write_bytes(b"spoiled")
    part = shuffler(tmp_path, said, "data.first_rows=70")
    for _ in range(3):
        assert not part.run_once().worked
    assert len(said) == 1
    assert said[0].startswith("not used: ")
    assert str(bad) in said[0]


def test_many_spoiled_chunks_are_counted(tmp_path: Path) -> None:
    said: list[str] = []
    for seed in range(8):
        add_rows(tmp_path, 2, seed).write_bytes(b"")
    shuffler(tmp_path, said).run_once()
    assert len(said) == 6
    assert said[-1] == "and 3 more files are not used"


def test_stopped_in_the_middle_nothing_is_left(tmp_path: Path) -> None:
    add_rows(tmp_path, 60, 1)
    progress = shuffler(tmp_path, [], stop=after(0)).run_once()
    assert progress.words == "stopped in the middle of a shuffle, which is removed"
    assert folders(tmp_path) == []
    assert not list((tmp_path / "shuffled").glob(".*.part"))


def test_progress_in_the_middle(tmp_path: Path) -> None:
    add_rows(tmp_path, 60, 1)
    part = shuffler(tmp_path, [])
    shown = []
    part.show = shown.append
    part.run_once()
    assert shown
    assert all(each.of == 60 and 0 <= each.done <= 60 and " of 60 rows" in each.words for each in shown)


def test_looking_changes_nothing(tmp_path: Path) -> None:
    add_rows(tmp_path, 60, 1)
    before = sorted(tmp_path.rglob("*"))
    assert str(shuffler(tmp_path, []).plan()).startswith("60 rows in the run, the window is the newest 60")
    assert sorted(tmp_path.rglob("*")) == before
