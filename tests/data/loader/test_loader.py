"""Files become batches: every row as often as it should, in splits that never mix, and threads that end."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.config.settings.data import LoaderSettings
from tengen.data.format.chunk import read_chunk
from tengen.data.format.rows import Rows, unpack_planes
from tengen.data.loader.loader import Loader, LoaderClosed
from tengen.data.loader.sources import FileList, FileSource, Folder, FoundFile
from tengen.data.loader.stages import StageFailed
from tengen.errors import OptionError
from tengen.schema import from_options
from tests.helpers import loading, paths
from tests.helpers import rows as made

COUNTS = (20, 1, 50, 8, 64, 3, 20, 40, 5, 100)  # rows of the files
TOTAL = sum(COUNTS)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert loading.threads() == []


def loader(source: FileSource, **options: Any) -> Loader:
    settings = from_options(LoaderSettings, {"batch": 16, "poll_seconds": 0.005, **options}, "loader")
    return Loader(source, made.FORM, made.GAME, settings)


WAYS: list[dict[str, Any]] = [
    {},
    {"readers": 1, "queue": 1},
    {"reservoir_rows": 40},
    {"reservoir_rows": 100_000},
    {"pool_chunks": 4},
    {"pool_chunks": 4, "chunk_share": 0.3},
    {"pool_chunks": 3, "chunk_share": 0.1, "reservoir_rows": 64, "queue": 1},
    {"pool_chunks": 100, "reservoir_rows": 7, "batch": 1},
    {"pool_chunks": 2, "reservoir_rows": 5, "batch": 1000},
]


@pytest.mark.parametrize("way", WAYS)
def test_a_list_gives_every_row_once_and_ends(tmp_path: Path, way: dict[str, Any]) -> None:
    with loader(FileList(loading.files(tmp_path, COUNTS)), **way) as it:
        batches = loading.drawn(it)
        assert it.get_next_batch("train") is None  # the end stays the end
        counts = it.counts()["train"]
    size = way.get("batch", 16)
    assert loading.often(batches) == loading.expected(COUNTS)
    assert [len(rows["ply"]) for rows in batches[:-1]] == [size] * (TOTAL // size - (TOTAL % size == 0))
    assert (counts.chunks, counts.rows, counts.batches) == (len(COUNTS), TOTAL, len(batches))


def test_without_shuffling_rows_stay_in_order(tmp_path: Path) -> None:
    with loader(FileList(loading.files(tmp_path, COUNTS)), readers=4) as it:
        found = [name for rows in loading.drawn(it) for name in loading.names(rows)]
    assert found == list(loading.expected(COUNTS))


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=pytest.mark.slow if number % 2 else ()) for number, way in enumerate(WAYS)]
)
def test_a_list_and_a_seed_give_the_same_batches_again(tmp_path: Path, way: dict[str, Any]) -> None:
    paths = loading.files(tmp_path, COUNTS)

    def order(seed: int) -> list[tuple[int, int]]:
        with loader(FileList(paths), seed=seed, **way) as it:
            return [name for rows in loading.drawn(it) for name in loading.names(rows)]

    assert order(1) == order(1)
    if "pool_chunks" in way or "reservoir_rows" in way:
        assert order(1) != order(2)
        assert order(1) != list(loading.expected(COUNTS))


@pytest.mark.parametrize("way", [{}, {"reservoir_rows": 40}])
def test_the_rest(tmp_path: Path, way: dict[str, Any]) -> None:
    paths = loading.files(tmp_path, (20, 20))
    with loader(FileList(paths), rest="drop", **way) as it:
        assert [len(rows["ply"]) for rows in loading.drawn(it)] == [16, 16]
    with loader(FileList(paths), rest="pad", **way) as it:
        batches = loading.drawn(it)
    assert [len(rows["ply"]) for rows in batches] == [16, 16, 16]
    assert all(not values[8:].any() for values in batches[-1].values())
    batches[-1] = {name: values[:8] for name, values in batches[-1].items()}
    assert loading.often(batches) == loading.expected((20, 20))


def test_a_batch_is_one_block_of_memory_that_is_never_written_again(tmp_path: Path) -> None:
    with loader(FileList(loading.files(tmp_path, COUNTS)), reservoir_rows=30, queue=1) as it:
        batches = [it.get_next_batch("train", timeout=loading.LONG) for _ in range(8)]
        arrays = [jax.device_put(batch) for batch in batches]
        copies = [[np.array(values) for values in batch or ()] for batch in batches]
        loading.drawn(it)
    for batch, on_device, copied in zip(batches, arrays, copies, strict=True):
        assert batch is not None
        assert len({id(values.base) for values in batch}) == 1
        assert all(values.flags.c_contiguous and values.ctypes.data % 64 == 0 for values in batch)
        for values, array, copy in zip(batch, on_device, copied, strict=True):
            assert np.array_equal(values, copy)
            assert np.array_equal(array, copy)


def test_planes_are_unpacked_on_the_device(tmp_path: Path) -> None:
    (path,) = loading.files(tmp_path, (20,))
    with loader(FileList([path]), batch=20) as it:
        (rows,) = loading.some(it, 1)
    assert rows["planes"].shape == (20, 6)
    planes = jax.jit(unpack_planes, static_argnums=1)(jnp.asarray(rows["planes"]), made.FORM.planes_shape)
    assert np.array_equal(planes, unpack_planes(read_chunk(path)[0]["planes"], made.FORM.planes_shape))


def test_splits_never_mix_and_do_not_wait_for_each_other(tmp_path: Path) -> None:
    counts = [8] * 40
    paths = loading.files(tmp_path, counts)
    found = {}
    for order in (("train", "validation", "test"), ("test", "validation", "train")):
        with loader(FileList(paths), validation=0.3, test=0.2, queue=1, batch=4) as it:
            for split in order:  # one to its end before the next begins
                seeds = {seed for seed, _ in loading.often(loading.drawn(it, split))}
                assert found.setdefault(split, seeds) == seeds
            assert sum(count.rows for count in it.counts().values()) == 40 * 8
    assert all(found.values())
    assert sorted(seed for seeds in found.values() for seed in seeds) == list(range(40))


def test_a_split_without_files_is_refused(tmp_path: Path) -> None:
    with loader(FileList([])) as it, pytest.raises(OptionError, match="validation: this loader's settings give it no"):
        it.get_next_batch("validation")


def test_an_endless_source_needs_a_pool(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="pool_chunks: expected at least 1"):
        loader(Folder(tmp_path))


def test_settings_that_do_not_go_together() -> None:
    with pytest.raises(OptionError, match="test: expected less than 0.5"):
        from_options(LoaderSettings, {"validation": 0.5, "test": 0.5}, "loader")
    with pytest.raises(OptionError, match="start_chunks: expected at most pool_chunks, which is 3, got 4"):
        from_options(LoaderSettings, {"pool_chunks": 3, "start_chunks": 4}, "loader")


def test_an_empty_list_ends_at_once() -> None:
    with loader(FileList([]), reservoir_rows=10, pool_chunks=2) as it:
        assert loading.drawn(it) == []


def test_files_without_rows(tmp_path: Path) -> None:
    counts = (0, 8, 0, 0)
    with loader(FileList(loading.files(tmp_path, counts)), pool_chunks=2) as it:
        assert loading.often(loading.drawn(it)) == loading.expected(counts)
        assert it.counts()["train"].chunks == 4


@pytest.mark.parametrize("way", [{}, {"chunk_share": 0.25}, {"chunk_share": 0.25, "queue": 1, "readers": 1}])
def test_an_endless_pool_gives_all_rows_equally_often(tmp_path: Path, way: dict[str, Any]) -> None:
    counts = [8] * 6
    loading.files(tmp_path, counts)
    with loader(Folder(tmp_path), pool_chunks=6, start_chunks=6, batch=12, **way) as it:
        for _ in range(5):
            assert loading.often(loading.some(it, 4)) == loading.expected(counts)


def test_an_endless_reservoir_gives_no_row_more_often_than_it_came_in(tmp_path: Path) -> None:
    counts, size, inside, queue = [8] * 6, 12, 60, 2
    loading.files(tmp_path, counts)
    options = {"pool_chunks": 6, "start_chunks": 6, "chunk_share": 0.5, "reservoir_rows": inside, "queue": queue}
    with loader(Folder(tmp_path), batch=size, **options) as it:
        often = loading.often(loading.some(it, 40))
    came = 40 * size + inside + size  # drawn, and still inside when the last batch was drawn
    assert set(often) == set(loading.expected(counts))
    assert max(often.values()) <= -(-came // 48) + 1
    # At most `inside` rows are missing, so their absences add up to no more than that.
    rounds = 40 * size // 48
    assert sum(max(rounds - often[name], 0) for name in loading.expected(counts)) <= inside + size


def test_a_reservoir_mixes_over_files(tmp_path: Path) -> None:
    counts = [64] * 8
    with loader(FileList(loading.files(tmp_path, counts)), reservoir_rows=300, batch=32) as it:
        batches = loading.drawn(it)
    assert all(len({seed for seed, _ in loading.names(rows)}) >= 4 for rows in batches[:-3])


def test_statistics_add_up(tmp_path: Path) -> None:
    paths = loading.files(tmp_path, COUNTS)
    paths[3].write_bytes(b"")
    rows = TOTAL - COUNTS[3]
    with loader(FileList(paths), pool_chunks=4, chunk_share=0.5, reservoir_rows=30) as it:
        batches = loading.drawn(it)
        stats = it.get_stats()
    assert [stage.name for stage in stats.stages] == ["watch", "read", "unpack", "mix", "batch", "consumer"]
    assert stats.stage("watch").items == len(COUNTS)
    assert stats.stage("read", "train").items == len(COUNTS) - 1
    assert [stats.stage(name, "train").rows for name in ("read", "unpack", "mix", "batch", "consumer")] == [rows] * 5
    assert [stats.stage(name, "train").items for name in ("mix", "batch", "consumer")] == [len(batches)] * 3
    assert dict(stats.rejected) == {"corrupt": 1, "foreign": 0, "unreadable": 0}
    assert stats.counts["train"].batches == len(batches)
    assert all(stage.queue == 0 for stage in stats.stages)
    assert json.loads(json.dumps(stats.to_dict()))["last_rejected"][0]["path"] == str(paths[3])


def test_what_is_waited_for_is_said(tmp_path: Path) -> None:
    loading.files(tmp_path, (8, 8))
    with loader(Folder(tmp_path), pool_chunks=9, start_chunks=5, reservoir_rows=50) as it:
        assert "read is not started" in it.waiting()
        loading.timeout_says(
            it,
            f"watch waits for new files: 2 files below {tmp_path}, nothing new for ",
            "read waits for files (",
            "unpack waits for chunks: 2 of 5 are in the pool (",
            "mix waits for rows: 0 of 66 are there (",
        )
        for seed in (2, 3, 4):
            loading.write(tmp_path / f"{seed:03}.npz", 8, seed)
        assert loading.some(it, 1)  # and then it goes on


def test_what_is_waited_for_when_the_folder_is_not_there(tmp_path: Path) -> None:
    with loader(Folder(tmp_path / "none"), pool_chunks=1) as it:
        loading.timeout_says(it, "none: No such file or directory")
        (tmp_path / "none" / "deep").mkdir(parents=True)
        loading.write(tmp_path / "none" / "deep" / "000.npz", 8, 0)
        assert loading.some(it, 1)


def test_closing_wakes_whoever_waits(tmp_path: Path) -> None:
    it = loader(Folder(tmp_path), pool_chunks=1)
    ended: list[BaseException] = []

    def consume() -> None:
        try:
            it.get_next_batch()
        except LoaderClosed as error:
            ended.append(error)

    consumers = [threading.Thread(target=consume) for _ in range(3)]
    for consumer in consumers:
        consumer.start()
    loading.eventually(lambda: it.get_stats().stage("watch").doing == "input")
    it.close()
    for consumer in consumers:
        consumer.join(loading.LONG)
    assert len(ended) == 3
    with pytest.raises(LoaderClosed, match="is closed"):
        it.get_next_batch()
    it.close()  # once more does no harm


@pytest.mark.parametrize("way", WAYS)
def test_closing_while_every_stage_is_full(tmp_path: Path, way: dict[str, Any]) -> None:
    it = loader(FileList(loading.files(tmp_path, [100] * 12)), **(way | {"batch": 2, "queue": 1}))
    it.start()
    if way.get("reservoir_rows", 0) < 1000:
        loading.eventually(lambda: it.get_stats().stage("batch", "train").doing == "output")
    it.close()


def test_closing_what_never_started() -> None:
    loader(FileList([])).close()


def test_a_stage_that_fails_is_told_with_the_cause(tmp_path: Path) -> None:
    broken = ZeroDivisionError("a mistake in the program")

    def read(path: Path) -> Rows:
        if path.name == "002.npz":
            raise broken
        return read_chunk(path)[0]

    paths = loading.files(tmp_path, [8] * 5)
    with Loader(FileList(paths), made.FORM, made.GAME, LoaderSettings(batch=8, reservoir_rows=4), read) as it:
        for _ in range(2):  # every time that somebody asks
            with pytest.raises(StageFailed, match="train: read failed: ZeroDivisionError: a mistake") as caught:
                loading.drawn(it)
            assert caught.value.__cause__ is broken


def test_a_reader_of_other_files_must_give_such_rows(tmp_path: Path) -> None:
    def read(path: Path) -> Rows:
        return made.rows(8) | {"score": np.zeros(8)}

    it = Loader(FileList([tmp_path]), made.FORM, made.GAME, LoaderSettings(), read)
    with it, pytest.raises(StageFailed, match="score: expected float32, got float64"):
        it.get_next_batch()


def test_a_source_that_fails_is_told_to_all_splits(tmp_path: Path) -> None:
    class Broken(Folder):
        def look(self) -> list[FoundFile]:
            raise RuntimeError("a mistake in the program")

    with loader(Broken(tmp_path), pool_chunks=2, validation=0.5) as it:
        for split in ("train", "validation"):
            with pytest.raises(StageFailed, match="loader: watch failed: RuntimeError: a mistake"):
                it.get_next_batch(split)


def test_several_consumers_share_the_batches(tmp_path: Path) -> None:
    with loader(FileList(loading.files(tmp_path, COUNTS)), reservoir_rows=30, batch=4) as it:
        found: list[Rows] = []
        consumers = [threading.Thread(target=lambda: found.extend(loading.drawn(it))) for _ in range(4)]
        for consumer in consumers:
            consumer.start()
        for consumer in consumers:
            consumer.join(loading.LONG)
    assert loading.often(found) == loading.expected(COUNTS)


def test_a_program_that_forgets_to_close_still_ends(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.helpers import rows as made; from tengen.data import *;"
        "it = Loader(Folder(Path(sys.argv[1])), made.FORM, made.GAME, LoaderSettings(batch=8, pool_chunks=2));"
        "print(len(it.get_next_batch()))"
    )
    loading.files(tmp_path, (8, 8))
    environment = os.environ | {"PYTHONPATH": paths.IMPORTABLE}
    command = [sys.executable, "-c", program, str(tmp_path)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=loading.LONG, check=True)
    assert (ended.stdout, ended.stderr) == (f"{len(made.FORM.fields)}\n", "")
