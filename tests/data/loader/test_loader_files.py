"""The loader among files as they are: late, gone, renamed, broken, foreign; and counts that survive all of it."""

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen import games
from tengen.config.settings.data import LoaderSettings
from tengen.data.format.chunk import write_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.loader.loader import Loader
from tengen.data.loader.sources import FileList, FileSource, Folder, FoundFile
from tengen.errors import OptionError
from tests.helpers import loading
from tests.helpers import rows as made
from tests.helpers.katago_files import made_arrays, on_boards, write_arrays


def loader(source: FileSource, **options: Any) -> Loader:
    return Loader(source, made.FORM, made.GAME, LoaderSettings(**{"batch": 8, "poll_seconds": 0.005, **options}))


class Bomb:
    """Would make a file if it were ever unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (str(self.path), "w"))


def garbage(folder: Path) -> dict[str, str]:
    """Files that are no good, and a word of the reason for each."""
    rows, good = made.rows(8, 99), loading.write(folder / "good.npz", 8, 99).read_bytes()

    def write(name: str, data: bytes) -> None:
        (folder / name).write_bytes(data)

    def member(name: str, values: Any, schema: int = 1) -> None:
        meta = {"schema": schema, "network": "n", "rows": 8, "games": 2, "format": made.FORM.to_dict()}
        text = json.dumps({**meta, **made.GAME.to_dict()}).encode()
        np.savez(folder / name, **{"meta": np.frombuffer(text, np.uint8), **rows, **values})

    write("empty.npz", b"")
    write("zeros.npz", bytes(5000))
    write("text.npz", b"hello")
    write("cut.npz", good[: len(good) // 2])
    write("pickle.npz", pickle.dumps(Bomb(folder / "exploded")))
    member("inside.npz", {"score": np.array([Bomb(folder / "exploded")] * 8, object)})
    member("future.npz", {}, schema=2)
    member("untrue.npz", {"search_value": np.full(8, np.nan, np.float32)})
    write_chunk(folder / "game.npz", made.FORM, rows, GameIdentity("hex", 1, {}), network="n")
    later = GameIdentity("go", 2, made.GAME.options)
    write_chunk(folder / "rules.npz", made.FORM, rows, later, network="n")
    write_chunk(folder / "fields.npz", made.PLAIN, made.rows(8, 99, made.PLAIN), made.GAME, network="n")
    (folder / "dangling.npz").symlink_to(folder / "nowhere")
    (folder / "good.npz").unlink()
    return {
        "empty.npz": "not a zip file",
        "zeros.npz": "not a zip file",
        "text.npz": "not a zip file",
        "cut.npz": "not a zip file",
        "pickle.npz": "not a zip file",
        "inside.npz": "score: expected",
        "future.npz": "schema: expected one of 1, got 2",
        "untrue.npz": "search_value: expected numbers from -1 to 1",
        "game.npz": "expected the game go, got hex",
        "rules.npz": "expected version 1 of the rules of go, got 2",
        "fields.npz": "they have no opponent_policy",
        "dangling.npz": "No such file",
    }


def test_garbage_is_set_aside_with_a_reason(tmp_path: Path) -> None:
    reasons = garbage(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    good = loading.files(tmp_path, (8, 20, 3))
    mixed = [good[0], *(tmp_path / name for name in reasons), *good[1:]]
    with loader(FileList(mixed)) as it:
        assert loading.often(loading.drawn(it)) == loading.expected((8, 20, 3))
        stats = it.get_stats()
    assert {rejected.path.name for rejected in stats.last_rejected} == set(reasons)
    for path, kind, reason in stats.last_rejected:
        assert reasons[path.name] in reason
        assert str(path) in reason
        foreign = path.name in ("game.npz", "rules.npz", "fields.npz")
        assert kind == ("foreign" if foreign else "unreadable" if path.name == "dangling.npz" else "corrupt")
    assert dict(stats.rejected) == {"corrupt": 8, "foreign": 3, "unreadable": 1}
    assert before <= {path.name for path in tmp_path.iterdir()}  # they are somebody else's: left where they are
    assert not (tmp_path / "exploded").exists()


def test_garbage_below_a_folder(tmp_path: Path) -> None:
    reasons = garbage(tmp_path)
    loading.files(tmp_path, (8, 20))
    with loader(Folder(tmp_path), pool_chunks=100, start_chunks=2) as it:
        assert set(loading.often(loading.some(it, 40))) == set(loading.expected((8, 20)))
        # A link that leads nowhere is not even a file that was found.
        loading.eventually(lambda: sum(it.get_stats().rejected.values()) == len(reasons) - 1)
        assert (it.counts()["train"].chunks, it.counts()["train"].rows) == (2, 28)


def test_only_garbage_means_waiting_not_failing(tmp_path: Path) -> None:
    garbage(tmp_path)
    with loader(Folder(tmp_path), pool_chunks=30) as it:
        loading.timeout_says(it, "0 of 1 are in the pool", "read waits for files")
        assert it.get_stats().rejected["corrupt"]
        loading.write(tmp_path / "000.npz", 8, 0)
        assert loading.often(loading.some(it, 1)) == loading.expected((8,))


def test_older_files_make_up_for_garbage(tmp_path: Path) -> None:
    loading.files(tmp_path, [8] * 9)
    garbage(tmp_path)  # and all of it is newer
    with loader(Folder(tmp_path), pool_chunks=3, start_chunks=3, queue=1) as it:
        assert {seed for seed, _ in loading.often(loading.some(it, 30))} == {6, 7, 8}
        for seed in (9, 10):
            loading.write(tmp_path / f"{seed:03}.npz", 8, seed)
            loading.eventually(lambda: seed in {seed for seed, _ in loading.often(loading.some(it, 1))})
        loading.some(it, 10)
        assert {seed for seed, _ in loading.often(loading.some(it, 30))} == {8, 9, 10}  # the oldest went first


def test_a_file_that_vanishes_before_it_is_read(tmp_path: Path) -> None:
    paths = loading.files(tmp_path, (8, 8, 8))

    class Unlucky(Folder):
        def look(self) -> list[FoundFile]:
            found = super().look()
            paths[1].unlink(missing_ok=True)
            return found

    with loader(Unlucky(tmp_path), pool_chunks=9, start_chunks=2) as it:
        assert {seed for seed, _ in loading.often(loading.some(it, 6))} == {0, 2}
        (rejected,) = it.get_stats().last_rejected
    assert (rejected.path, rejected.kind) == (paths[1], "unreadable")
    assert "No such file" in rejected.reason


def test_rows_of_larger_boards_are_left_out_and_counted(tmp_path: Path) -> None:
    game = games.make("go", size=3, observation="katago")
    path = write_arrays(tmp_path / "A.npz", on_boards(made_arrays(6, 5), [(3, 3)] * 4 + [(5, 5)] * 2))
    settings = LoaderSettings(batch=2, pool_chunks=0, validation=0.0)
    with Loader(FileList([path]), RowFormat.of(game), GameIdentity.of(game), settings) as it:
        batches = list(iter(it.get_next_batch, None))
        assert it.remarks() == [f"{path}: 2 of 6 rows are of boards larger than 3x3, and left out"]
        assert it.remarks() == [], "each is made once"
        assert it.counts()["train"].rows == sum(len(batch[0]) for batch in batches) == 4


def test_many_files_that_are_used_in_part_are_counted(tmp_path: Path) -> None:
    game = games.make("go", size=3, observation="katago")
    arrays = on_boards(made_arrays(2, 5), [(3, 3), (5, 5)])
    paths = [write_arrays(tmp_path / f"{number}.npz", arrays) for number in range(9)]
    settings = LoaderSettings(batch=2, pool_chunks=0, validation=0.0)
    with Loader(FileList(paths), RowFormat.of(game), GameIdentity.of(game), settings) as it:
        assert len(list(iter(it.get_next_batch, None))) >= 4
        *named, rest = it.remarks()
        assert len({line.partition(":")[0] for line in named}) == 5
        assert rest == "and 4 more files are used in part"
        assert it.remarks() == []


def test_rows_outlive_their_file(tmp_path: Path) -> None:
    paths = loading.files(tmp_path, (8, 8))
    with loader(Folder(tmp_path), pool_chunks=2, start_chunks=2) as it:
        loading.some(it, 1)
        for path in paths:
            path.unlink()
        assert set(loading.often(loading.some(it, 20))) == set(loading.expected((8, 8)))


def test_the_newest_chunks_take_the_place_of_the_oldest(tmp_path: Path) -> None:
    loading.files(tmp_path, [8] * 10)
    with loader(Folder(tmp_path), pool_chunks=3, start_chunks=3, queue=1) as it:
        assert {seed for seed, _ in loading.often(loading.some(it, 30))} == {7, 8, 9}
        assert it.get_stats().passed_over["train"] == 7
        loading.write(tmp_path / "010.npz", 8, 10)
        loading.eventually(lambda: it.counts()["train"].chunks == 4)
        loading.eventually(lambda: 10 in {seed for seed, _ in loading.often(loading.some(it, 1))})
        loading.some(it, 10)  # what was on its way
        assert {seed for seed, _ in loading.often(loading.some(it, 30))} == {8, 9, 10}


def test_files_are_counted_while_nobody_takes_batches(tmp_path: Path) -> None:
    with loader(Folder(tmp_path), pool_chunks=2, queue=1, reservoir_rows=8) as it:
        it.start()
        for seed in range(12):
            loading.write(tmp_path / f"{seed:03}.npz", 8, seed)
            loading.eventually(lambda: it.counts()["train"].chunks == seed + 1)
        assert it.counts()["train"].rows == 12 * 8


def test_a_file_counts_once_under_whatever_name(tmp_path: Path) -> None:
    (path,) = loading.files(tmp_path, (8,))
    with loader(Folder(tmp_path), pool_chunks=5) as it:
        loading.some(it, 1)
        (tmp_path / "below").mkdir()
        path.rename(tmp_path / "below" / "renamed.npz")
        os.link(tmp_path / "below" / "renamed.npz", tmp_path / "linked.npz")
        loading.write(tmp_path / "new.npz", 20, 1)
        loading.eventually(lambda: it.counts()["train"].chunks == 2)
        loading.some(it, 20)
        assert (it.counts()["train"].chunks, it.counts()["train"].rows) == (2, 28)
    with loader(FileList([tmp_path / "linked.npz", tmp_path / "below" / "renamed.npz"])) as it:
        assert loading.often(loading.drawn(it)) == loading.expected((8,))


def test_counts_go_on_after_a_restart(tmp_path: Path) -> None:
    loading.files(tmp_path, (8, 20, 3))
    with loader(Folder(tmp_path), pool_chunks=2, start_chunks=2) as it:
        loading.some(it, 5)
        state = json.loads(json.dumps(it.state()))
    assert state["counts"]["train"] == {"chunks": 2, "rows": 23, "batches": 5}
    loading.write(tmp_path / "003.npz", 5, 3)
    with loader(Folder(tmp_path), pool_chunks=9, start_chunks=4) as it:
        it.restore(state)
        assert it.state() == state
        assert set(loading.often(loading.some(it, 30))) == set(loading.expected((8, 20, 3, 5)))
        counts = it.counts()["train"]
        # The oldest file was passed over before, and is read for the first time now.
        assert (counts.chunks, counts.rows, counts.batches) == (4, 36, 35)
        with pytest.raises(ValueError, match="before it is started"):
            it.restore(state)


def test_files_that_have_gone_are_forgotten(tmp_path: Path) -> None:
    paths = loading.files(tmp_path, (8, 8))
    with loader(Folder(tmp_path), pool_chunks=2, start_chunks=2) as it:
        loading.some(it, 1)
        assert len(it.state()["counted"]) == 2
        paths[0].unlink()
        loading.eventually(lambda: len(it.state()["counted"]) == 1)
        assert it.counts()["train"].chunks == 2


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"counts": {}, "counted": []},
        {"counts": 3, "counted": []},
        {"counts": {split: {"rows": -1} for split in ("train", "validation", "test")}, "counted": []},
        {"counts": {split: {"rows": "1"} for split in ("train", "validation", "test")}, "counted": []},
        {"counts": {split: {"other": 1} for split in ("train", "validation", "test")}, "counted": []},
        {"counts": {split: {} for split in ("train", "validation", "test")}, "counted": None},
    ],
)
def test_a_state_that_is_none(state: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="loader state: "):
        loader(FileList([])).restore(state)
