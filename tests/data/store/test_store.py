"""The chunks of a run, in the order in which they were made."""

import os
import re
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen import games
from tengen.data.format import chunk
from tengen.data.format.chunk import ForeignChunk, UnreadableChunk, write_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.store.store import Store, last_number
from tengen.errors import OptionError, TengenError
from tests.helpers import rows as made
from tests.helpers.katago_files import made_arrays, on_boards, write_arrays


def add(store: Store, count: int, seed: int, network: str = "net") -> Path:
    path = store.reserve(network)
    write_chunk(path, made.FORM, made.rows(count, seed), made.GAME, network=network)
    return path


def test_nothing_there(tmp_path: Path) -> None:
    store = Store(tmp_path / "none")
    assert store.chunks() == []
    assert store.listing().rows == 0
    loaded = store.read_newest(10, made.FORM, made.GAME)
    assert (loaded.count, loaded.chunks, loaded.corrupt) == (0, (), ())
    assert loaded.rows["policy"].shape == (0, 10)
    assert store.clean() == []
    assert not (tmp_path / "none").exists()


def test_order_over_networks_workers_and_restarts(tmp_path: Path) -> None:
    made_ = []
    for turn in range(4):  # each turn is a restart of two workers
        workers = [Store(tmp_path, "b"), Store(tmp_path, "a1")]
        for store in (*workers, workers[0]):
            made_.append(add(store, 3, len(made_), f"net-{9 - turn}"))
    assert [item.path for item in Store(tmp_path).chunks()] == made_
    assert Store(tmp_path).chunks()[0].network == "net-9"
    loaded = Store(tmp_path).read_newest(100, made.FORM, made.GAME)
    assert made.same(loaded.rows, made.joined(*(made.rows(3, seed) for seed in range(12))))
    assert [item.path for item in loaded.chunks] == made_


def test_reserved_names_differ_before_they_are_written(tmp_path: Path) -> None:
    store, other = Store(tmp_path, "a"), Store(tmp_path, "b")
    names = [store.reserve("n") for _ in range(3)] + [other.reserve("n") for _ in range(3)]
    assert len(set(names)) == 6
    assert names[:3] == sorted(names[:3])
    assert not list(tmp_path.iterdir())


def test_a_worker_that_is_alone_lists_the_folders_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = [add(Store(tmp_path), 3, seed) for seed in range(2)]
    lists: list[Path] = []
    listing = Store.files
    monkeypatch.setattr(Store, "files", lambda store: lists.append(store.folder) or listing(store))
    store = Store(tmp_path, alone=True)
    more = [add(store, 3, seed) for seed in range(2, 6)]
    assert len(lists) == 1
    assert [item.path for item in store.chunks()] == [*first, *more]


def test_numbers_are_not_used_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add(store, 1, 0)
    last = add(store, 1, 1)
    last.rename(last.with_name(last.name + ".corrupt"))
    assert add(Store(tmp_path), 1, 2).name == "0000000002-a.npz"


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "a b", "x" * 300])
def test_names_that_are_no_folders(tmp_path: Path, name: str) -> None:
    with pytest.raises(OptionError, match="network"):
        Store(tmp_path).reserve(name)


@pytest.mark.parametrize("worker", ["", "a-b", "../x", "x" * 41])
def test_worker_names(tmp_path: Path, worker: str) -> None:
    with pytest.raises(OptionError, match="worker"):
        Store(tmp_path, worker)


@given(st.lists(st.integers(0, 9), max_size=5), st.integers(0, 40))
def test_newest_rows(tmp_path_factory: pytest.TempPathFactory, sizes: list[int], count: int) -> None:
    store = Store(tmp_path_factory.mktemp("run"))
    for seed, size in enumerate(sizes):
        add(store, size, seed)
    loaded = store.read_newest(count, made.FORM, made.GAME)
    everything = made.joined(made.rows(0), *(made.rows(size, seed) for seed, size in enumerate(sizes)))
    start = max(sum(sizes) - count, 0)
    assert loaded.count == sum(sizes) - start
    assert made.same(loaded.rows, {name: values[start:] for name, values in everything.items()})
    assert store.listing().rows == sum(sizes)


def test_reads_only_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    paths = [add(store, 5, seed) for seed in range(6)]
    opened = []
    real = chunk.read_chunk
    monkeypatch.setattr(chunk, "read_chunk", lambda path, *rest: opened.append(path) or real(path, *rest))
    store.read_newest(8, made.FORM, made.GAME)
    assert opened == [paths[5], paths[4]]
    store.listing()
    assert len(opened) == 2


def test_corrupt_chunks_are_set_aside_and_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    paths = [add(store, 5, seed) for seed in range(4)]
    paths[3].write_bytes(paths[3].read_bytes()[:-1])  # its meta is gone
    damaged = bytearray(paths[2].read_bytes())
    damaged[len(damaged) // 2] ^= 255  # its meta is fine
    paths[2].write_bytes(damaged)
    loaded = Store(tmp_path).read_newest(7, made.FORM, made.GAME)
    assert sorted(path.name for path in loaded.corrupt) == ["0000000002-a.npz.corrupt", "0000000003-a.npz.corrupt"]
    assert all(path.exists() for path in loaded.corrupt)
    assert not paths[2].exists()
    # Older rows make up for them.
    assert made.same(loaded.rows, {k: v[3:] for k, v in made.joined(made.rows(5, 0), made.rows(5, 1)).items()})
    again = Store(tmp_path).read_newest(7, made.FORM, made.GAME)
    assert again.corrupt == ()
    assert made.same(again.rows, loaded.rows)


def test_a_listing_sets_aside_too(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add(store, 5, 0)
    add(store, 5, 1).write_bytes(b"")
    listing = store.listing()
    assert (listing.rows, [path.name for path in listing.corrupt]) == (5, ["0000000001-a.npz.corrupt"])


def test_foreign_and_unreadable_chunks_stay_where_they_are(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = add(store, 5, 0)
    with pytest.raises(ForeignChunk, match="0000000000-a"):
        store.read_newest(5, made.FORM, made.ELSE)
    assert path.exists()
    folder = store.reserve("net")
    folder.mkdir()
    with pytest.raises(UnreadableChunk, match="0000000001-a"):
        store.read_newest(5, made.FORM, made.GAME)
    assert folder.exists()


def test_chunks_that_vanish_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    paths = [add(store, 5, seed) for seed in range(3)]
    listed = store.chunks()
    store.listing()
    monkeypatch.setattr(store, "chunks", lambda: listed)
    paths[1].unlink()
    loaded = store.read_newest(100, made.FORM, made.GAME)
    assert made.same(loaded.rows, made.joined(made.rows(5, 0), made.rows(5, 2)))


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add(store, 5, 0)
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "net" / "notes.npz").write_text("hello")
    (tmp_path / "net" / "0000000009-a.npz.bak").write_text("hello")
    assert store.listing().rows == 5
    assert store.read_newest(9, made.FORM, made.GAME).corrupt == ()


def test_half_written_files_are_removed_when_old(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add(store, 5, 0)
    old, new = (tmp_path / "net" / f".0000000001-a.npz.{n}.part" for n in ("0123abcd", "4567cdef"))
    for path in (old, new):
        path.write_bytes(b"half")
    then = time.time() - 7200
    os.utime(old, (then, then))
    assert store.clean() == [old]
    assert new.exists()
    assert store.listing().rows == 5
    assert store.reserve("net").name == "0000000002-a.npz"


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "selfplay").write_text("hello")
    with pytest.raises(TengenError, match="selfplay: cannot be read: Not a directory"):
        Store(tmp_path / "selfplay").chunks()


def test_rows_can_be_changed_by_who_reads_them(tmp_path: Path) -> None:
    store = Store(tmp_path)
    add(store, 5, 0)
    rows = store.read_newest(5, made.FORM, made.GAME).rows
    rows["weight"] *= np.float32(2)


@pytest.mark.parametrize(
    "stray", ["9999999999-x.npz", "9999999998-x.npz", "5000000000-x.npz", ".9999999999-x.npz.1.part"]
)
def test_a_stray_number_is_not_counted_on_from(tmp_path: Path, stray: str) -> None:
    store = Store(tmp_path)
    add(store, 5, 0)
    (tmp_path / "net" / stray).write_bytes(b"no chunk")
    for number in (1, 2):
        assert add(store, 5, number).name == f"000000000{number}-a.npz"
    assert Store(tmp_path).reserve("net").name == "0000000003-a.npz"  # a later process


def test_stray_numbers_alone(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir(parents=True)
    (tmp_path / "net" / "9999999999-x.npz").touch()
    store = Store(tmp_path)
    assert store.last() == -1
    assert [store.reserve("net").name for _ in range(3)] == [f"000000000{number}-a.npz" for number in range(3)]


def test_numbers_that_go_on() -> None:
    assert last_number([], 100) == -1
    assert last_number([3, 1, 2], 100) == 3
    assert last_number([57, 58], 100) == 58  # older ones were removed
    assert last_number([4, 5, 7, 99], 100) == 5
    assert last_number([99], 100) == -1


def test_a_chunk_with_too_many_rows(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = add(store, 5, 0)
    assert store.read_newest(5, made.FORM, made.GAME, 5).count == 5
    with pytest.raises(ForeignChunk, match="has 5 rows, and data.max_chunk_rows allows 4"):
        store.read_newest(5, made.FORM, made.GAME, 4)
    assert path.exists()


def test_files_of_katago_are_chunks_by_their_times(tmp_path: Path) -> None:
    store = Store(tmp_path)
    places = [tmp_path / net / "tdata" / name for net, name in (("b", "F0.npz"), ("a", "0A.npz"), ("b", "77.npz"))]
    for number, path in enumerate(places):
        write_arrays(path, made_arrays(4, seed=number))
        os.utime(path, ns=(0, 10**9 * (number + 1)))
    for name in ("data0_1.npz", ".hidden.npz", "A1.npz.tmp"):
        (places[0].parent / name).write_bytes(b"unfinished")
    assert [item.path for item in store.chunks()] == places
    assert [item.network for item in store.chunks()] == ["b", "a", "b"]
    own = store.reserve("net")
    write_chunk(own, made.FORM, made.rows(2, 0), made.GAME, network="net")
    os.utime(own, ns=(0, 25 * 10**8))
    assert [item.path for item in store.chunks()] == [*places[:2], own, places[2]]
    assert [item.foreign for item in store.chunks()] == [True, True, False, True]
    assert own.name == "0000000000-a.npz"


def test_files_for_katago_have_numbers_too(tmp_path: Path) -> None:
    store = Store(tmp_path, "a_1")
    write_chunk(store.reserve("net"), made.FORM, made.rows(2, 0), made.GAME, network="net")
    for_katago = store.reserve("net", "katago")
    assert for_katago.parent == tmp_path / "net" / "tdata"
    assert re.fullmatch(
        r"0000000001-[0-9a-f]{8}\.npz", for_katago.name
    )  # no underscore: KataGo's unfinished files have
    write_arrays(for_katago, made_arrays(4))
    assert [(item.number, item.foreign) for item in Store(tmp_path).chunks()] == [(0, False), (1, True)]
    assert Store(tmp_path).last() == 1


def test_bad_files_of_katago_are_made_up_for_by_others(tmp_path: Path) -> None:
    game = games.make("go", size=3, observation="katago")
    form, identity = RowFormat.of(game), GameIdentity.of(game)
    boards = {1: [(3, 3), (5, 5), (2, 3), (3, 3)], 2: [(5, 5), (4, 4), (3, 4), (5, 2)]}
    for number in range(4):
        arrays = on_boards(made_arrays(4, 5), boards[number]) if number in boards else made_arrays(4)
        path = write_arrays(tmp_path / "net" / "tdata" / f"{number}.npz", arrays)
        os.utime(path, ns=(0, 10**9 * (number + 1)))
    last = tmp_path / "net" / "tdata" / "3.npz"
    last.write_bytes(last.read_bytes()[:-100])
    store = Store(tmp_path)
    loaded = store.read_newest(6, form, identity)
    assert loaded.count == 6
    assert [path.name for path in loaded.corrupt] == ["3.npz.corrupt"]
    (none,), (some,) = store.unused.values(), store.partly_used.values()
    assert "2.npz: 4 of 4 rows are of boards larger than 3x3, and left out" in none
    assert "1.npz: 1 of 4 rows are of boards larger than 3x3, and left out" in some
    assert store.listing().rows == 12, "rows of larger boards count in the listing"
