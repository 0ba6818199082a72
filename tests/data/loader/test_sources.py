"""Where files come from, and which split they belong to."""

import os
import random
from pathlib import Path
from typing import Any

import pytest

from tengen.config.settings.data import LoaderSettings
from tengen.data.loader.sources import SPLITS, FileList, Folder, share_of, split_of


def touch(path: Path, age: int = 0, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (10**9 - age, 10**9 - age))
    return path


def names(source: Folder | FileList) -> list[str]:
    return [found.path.name for found in source.look()]


def test_a_list_is_given_once_in_its_order(tmp_path: Path) -> None:
    paths = [touch(tmp_path / name) for name in "cab"]
    source = FileList([*paths, paths[0], tmp_path / "missing"])
    assert not source.endless
    assert names(source) == ["c", "a", "b", "missing"]
    assert names(source) == []
    assert source.words() == "a list of 5 files"


def test_oldest_first_at_any_depth(tmp_path: Path) -> None:
    touch(tmp_path / "b.npz", 5)
    touch(tmp_path / "one" / "two" / "a.npz", 9)
    touch(tmp_path / "one" / "c.npz", 1)
    touch(tmp_path / "one" / "d.npz", 1)
    source = Folder(tmp_path)
    assert source.endless
    assert names(source) == ["a.npz", "b.npz", "c.npz", "d.npz"]
    assert names(source) == []


def test_what_is_not_complete_is_not_looked_at(tmp_path: Path) -> None:
    source = Folder(tmp_path)
    hidden = touch(tmp_path / ".a.npz.0123abcd.part")
    touch(tmp_path / ".b.npz")
    touch(tmp_path / "c.npz.part")
    touch(tmp_path / ".folder" / "d.npz")
    touch(tmp_path / "e.npz.corrupt")
    (tmp_path / "f.npz").mkdir()  # a folder by an odd name
    assert names(source) == []
    hidden.rename(tmp_path / "a.npz")
    assert names(source) == ["a.npz"]


def test_new_names_of_known_files_are_not_new(tmp_path: Path) -> None:
    source = Folder(tmp_path)
    path = touch(tmp_path / "a.npz")
    assert names(source) == ["a.npz"]
    path = path.rename(tmp_path / "b.npz")
    assert names(source) == []
    (tmp_path / "deep").mkdir()
    path = path.rename(tmp_path / "deep" / "a.npz")
    os.link(path, tmp_path / "c.npz")
    assert names(source) == []
    path.unlink()
    assert names(source) == []


def test_a_file_that_moves_while_folders_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Folder(tmp_path)
    touch(tmp_path / "a" / "x.npz")
    touch(tmp_path / "b" / "y.npz", 9)
    assert names(source) == ["y.npz", "x.npz"]
    listed: list[str] = []
    real = os.scandir

    def move(folder: str) -> Any:
        """It is never there when its folder is listed."""
        here, there = (
            tmp_path / Path(folder).name / "x.npz",
            tmp_path / ("b" if folder.endswith("a") else "a") / "x.npz",
        )
        listed.append(folder)
        if here.exists():
            here.rename(there)
        return real(folder)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", move)
        assert names(source) == []
    assert len(listed) >= 2
    assert names(source) == []


def test_another_file_under_a_known_name_is_new(tmp_path: Path) -> None:
    source = Folder(tmp_path)
    touch(tmp_path / "a.npz", 9)
    assert names(source) == ["a.npz"]
    touch(tmp_path / "other", 3).replace(tmp_path / "a.npz")
    assert names(source) == ["a.npz"]


def test_a_new_file_of_the_same_length_may_get_the_inode_of_an_old_one(tmp_path: Path) -> None:
    source = Folder(tmp_path)
    for age in range(20):
        touch(tmp_path / f"{age}.npz", age)
        assert names(source) == [f"{age}.npz"]
        (tmp_path / f"{age}.npz").unlink()


def test_presence(tmp_path: Path) -> None:
    source = Folder(tmp_path)
    touch(tmp_path / "a.npz", 2)
    touch(tmp_path / "b.npz", 1)
    assert source.present({"anything"}) == {"anything"}  # nobody has looked yet
    a, b = (found.key for found in source.look())
    assert source.present({a, b, "other"}) == {a, b}
    (tmp_path / "a.npz").unlink()
    source.look()
    assert source.present({a, b, "other"}) == {b}
    assert source.words().startswith(f"1 files below {tmp_path}, nothing new for ")


def test_a_disk_that_is_not_mounted_for_a_while(tmp_path: Path) -> None:
    source = Folder(tmp_path / "disk")
    touch(tmp_path / "disk" / "a.npz")
    (key,) = (found.key for found in source.look())
    (tmp_path / "disk").rename(tmp_path / "elsewhere")
    for _ in range(3):
        assert source.look() == []
        assert source.present({key}) == {key}
    (tmp_path / "elsewhere").rename(tmp_path / "disk")
    assert source.look() == []
    assert source.present({key, "other"}) == {key}


def test_folders_that_come_and_go(tmp_path: Path) -> None:
    source = Folder(tmp_path / "run")
    assert names(source) == []
    assert "No such file" in source.words()
    touch(tmp_path / "run" / "a.npz")
    assert names(source) == ["a.npz"]
    assert "No such file" not in source.words()
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    assert names(source) == []
    (tmp_path / "run").write_text("a file where a folder should be")
    assert names(source) == []
    assert "Not a directory" in source.words()


def test_a_folder_that_cannot_be_read_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Folder(tmp_path)
    touch(tmp_path / "a.npz")
    assert names(source) == ["a.npz"]

    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        touch(tmp_path / "b.npz")
        assert names(source) == []
        assert "Permission denied" in source.words()
    assert names(source) == ["b.npz"]  # and not `a` again


def test_quiet_folders_are_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Folder(tmp_path)
    touch(tmp_path / "old" / "a.npz")
    touch(tmp_path / "new" / "b.npz")
    for _ in range(3):
        source.look()
    listed: list[str] = []
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(Path(path).name) or real(path))
    source.look()
    assert listed == []
    touch(tmp_path / "new" / "c.npz")
    assert names(source) == ["c.npz"]
    assert listed == ["new"]


def test_any_history_finds_each_file_once(tmp_path: Path) -> None:
    draw = random.Random(5)
    source, written, found = Folder(tmp_path), 0, []
    for _ in range(200):
        action = draw.randrange(4)
        there = sorted(tmp_path.rglob("*.npz"))
        folder = tmp_path / draw.choice(["a", "b", "a/c"])
        folder.mkdir(parents=True, exist_ok=True)
        if action == 0:
            found += source.look()
        elif action == 1 and there:
            draw.choice(there).rename(folder / f"moved{draw.random()}.npz")
        else:
            touch(folder / f"{written}.npz", written)
            written += 1
    found += source.look()
    assert len(found) == written
    assert len({item.key for item in found}) == written


NAMES = [f"{number:010d}-a.npz" for number in range(20_000)]


def test_shares() -> None:
    settings = LoaderSettings(validation=0.1, test=0.05)
    found = [split_of(name, settings.validation, settings.test) for name in NAMES]
    for split in SPLITS:
        share = share_of(split, settings)
        # Five standard deviations of 20,000 draws are less than 0.02.
        assert abs(found.count(split) / len(NAMES) - share) < 0.02
    assert [share_of(split, settings) for split in SPLITS] == [0.85, 0.1, 0.05]


def test_all_is_for_training_unless_asked() -> None:
    assert {split_of(name, 0, 0) for name in NAMES} == {"train"}


def test_known_names_stay_where_they_are() -> None:
    found = [split_of(f"{name}.npz", 0.4, 0.3) for name in "abch"]
    assert found == ["train", "train", "test", "validation"]
    assert split_of("\udcff.npz", 0.3, 0.3) in SPLITS  # a name that is no text


def test_larger_shares_take_no_file_out_of_a_split_before() -> None:
    for name in NAMES[:2000]:
        before, after = split_of(name, 0.1, 0.1), split_of(name, 0.2, 0.1)
        assert before == after or (before, after) == ("train", "validation")
