"""What happens to rows between files and batches."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.data.format.rows import RowFormat, Rows
from tengen.data.loader.mixing import Arrived, Batches, NewestFiles, Picked, Pool, Reservoir
from tengen.data.loader.sources import FoundFile
from tengen.data.loader.stages import ChannelClosed, ChannelEnded
from tests.helpers import rows as made


def test_older_files_are_passed_over_and_can_come_back() -> None:
    files = [FoundFile(Path(name), name) for name in "abcdef"]
    newest = NewestFiles(2)
    newest.put(files[0])
    newest.put_all(files[1:])
    assert (newest.waiting, newest.capacity, newest.passed_over) == (2, 2, 4)
    assert newest.get() == files[4]
    newest.bring_back()
    newest.bring_back()
    assert newest.passed_over == 2
    assert [newest.get() for _ in range(3)] == [files[2]._replace(old=True), files[3]._replace(old=True), files[5]]
    for _ in range(3):
        newest.bring_back()  # there are only two more
    assert [newest.get().path.name for _ in range(2)] == ["a", "b"]
    assert (newest.poll(), newest.passed_over) == (None, 0)


def chunk(number: int, count: int, old: bool = False) -> Arrived:
    return Arrived({"chunk": np.full(count, number), "place": np.arange(count)}, old)


def pool(size: int, start: int = 1, share: float = 1.0, endless: bool = True, seed: int = 0) -> Pool:
    return Pool(size, start, share, endless=endless, numbers=np.random.default_rng(seed))


def rows(picked: Picked) -> list[tuple[int, int]]:
    which = slice(None) if picked.which is None else picked.which
    return list(zip(picked.rows["chunk"][which].tolist(), picked.rows["place"][which].tolist(), strict=True))


def test_waits_for_enough_chunks_and_says_so() -> None:
    it = pool(5, start=3)
    it.put(chunk(0, 4))
    it.put(chunk(1, 4))
    assert it.poll() is None
    assert it.words() == "chunks: 2 of 3 are in the pool"
    with pytest.raises(TimeoutError):
        it.get(timeout=0.001)
    it.put(chunk(2, 4))
    assert it.poll() is not None


def test_each_pass_draws_each_chunk_once_in_another_order() -> None:
    it = pool(7, start=7)
    for number in range(7):
        it.put(chunk(number, 2))
    passes = [[rows(it.get())[0][0] for _ in range(7)] for _ in range(20)]
    assert all(sorted(order) == list(range(7)) for order in passes)
    assert len(set(map(tuple, passes))) > 10


def test_new_chunks_take_the_place_of_the_oldest_and_join_the_pass() -> None:
    it = pool(4, start=4)
    for number in range(4):
        it.put(chunk(number, 2))
    first = rows(it.get())[0][0]
    it.put(chunk(4, 2))
    rest = [rows(it.get())[0][0] for _ in range(4 - (first != 0))]
    assert sorted([first, *rest]) == sorted({first, 1, 2, 3, 4})
    assert sorted(rows(it.get())[0][0] for _ in range(4)) == [1, 2, 3, 4]
    assert (it.waiting, it.capacity) == (4, 4)


def test_old_chunks_go_before_newer_ones() -> None:
    it = pool(3, start=3)
    it.put(chunk(2, 2))
    it.put(chunk(1, 2, old=True))
    it.put(chunk(0, 2, old=True))
    it.put(chunk(3, 2))
    assert sorted(rows(it.get())[0][0] for _ in range(3)) == [1, 2, 3]
    it.put(chunk(0, 2, old=True))
    assert sorted(rows(it.get())[0][0] for _ in range(3)) == [1, 2, 3]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.floats(0.01, 1), st.integers(0, 99))
def test_rows_of_a_chunk_are_drawn_equally_often(counts: list[int], share: float, seed: int) -> None:
    it = pool(len(counts), len(counts), share, seed=seed)
    for number, count in enumerate(counts):
        it.put(chunk(number, count))
    often: Counter[tuple[int, int]] = Counter()
    for _ in range(40 * len(counts)):
        often.update(rows(it.get()))
    for number, count in enumerate(counts):
        times = [often[number, place] for place in range(count)]
        assert max(times) - min(times) <= 1
        size = max(round(share * count), 1)  # 40 draws of that many, or fewer when the order comes to its end
        assert 40 * size // (count + size) <= max(times) <= 40 * size // count + 1


@given(st.lists(st.integers(1, 30), max_size=12), st.integers(1, 5), st.floats(0.01, 1), st.integers(0, 99))
def test_from_a_source_that_ends_every_row_comes_once(counts: list[int], size: int, share: float, seed: int) -> None:
    it = pool(size, 1, share, endless=False, seed=seed)
    todo = [chunk(number, count) for number, count in enumerate(counts)]
    often: Counter[tuple[int, int]] = Counter()
    while todo:
        if it.waiting < size:
            it.put(todo.pop(0))
            if it.waiting < size:
                assert it.poll() is None  # so the order does not depend on who is quicker
        else:
            often.update(rows(it.get()))
    it.end()
    while it.waiting:
        often.update(rows(it.get()))
    with pytest.raises(ChannelEnded):
        it.get()
    assert often == Counter((number, place) for number, count in enumerate(counts) for place in range(count))


def test_closing() -> None:
    it = pool(2)
    it.put(chunk(0, 1))
    it.close()
    with pytest.raises(ChannelClosed):
        it.get()
    with pytest.raises(ChannelClosed):
        it.put(chunk(1, 1))


class Items(list[Any]):
    """Items that are all there already."""

    def poll(self) -> Any | None:
        raise NotImplementedError

    def get(self) -> Any:
        raise NotImplementedError


def reservoir(size: int, batch: int, seed: int = 0, form: RowFormat = made.FORM, queue: int = 2) -> Reservoir:
    return Reservoir(form, size, Batches(form, batch, "short"), queue, np.random.default_rng(seed))


def passed(it: Reservoir, blocks: list[Rows], behind: int = 0, form: RowFormat = made.FORM) -> Iterator[Rows]:
    """Batches, gathered as soon as they are chosen or, like on another thread, up to `behind` later."""
    waiting: list[np.ndarray] = []
    for slots in it.mix(Items(blocks)):
        waiting.append(slots)
        if len(waiting) > behind:
            for batch in it.gather(Items([waiting.pop(0)])):
                yield dict(zip(form.fields, batch, strict=True))
    for batch in it.gather(Items(waiting)):
        yield dict(zip(form.fields, batch, strict=True))


@given(st.lists(st.integers(1, 40), max_size=8), st.integers(1, 60), st.integers(1, 20), st.integers(0, 4))
def test_every_row_once_and_unchanged(counts: list[int], size: int, batch: int, behind: int) -> None:
    blocks = [made.rows(count, seed) for seed, count in enumerate(counts)]
    batches = list(passed(reservoir(size, batch, queue=max(behind, 1)), blocks, behind))
    assert [len(rows["ply"]) for rows in batches[:-1]] == [batch] * (len(batches) - 1)
    if not counts:
        assert batches == []
        return
    mixed = made.joined(*batches)
    order = np.lexsort((mixed["ply"], mixed["game"][:, 0]))
    assert made.same({name: values[order] for name, values in mixed.items()}, made.joined(*blocks))


def test_it_is_full_before_the_first_batch_and_stays_full() -> None:
    it = reservoir(50, 10)
    consumed = 0

    def blocks() -> Iterator[Rows]:
        nonlocal consumed
        for seed in range(30):
            consumed += 7
            yield made.rows(7, seed)

    incoming: Any = blocks()
    for number, slots in enumerate(it.mix(incoming)):
        list(it.gather(Items([slots])))
        if consumed < 30 * 7:
            assert 50 <= consumed - 10 * (number + 1) < 50 + 10 + 7
    assert it.words() == "rows: 0 of 60 are there"


def test_rows_wait_for_a_random_time() -> None:
    """A row leaves with the same chance at each draw: on average after size / batch draws, and in no fixed order."""
    size, batch = 200, 20
    blocks = [made.rows(batch, seed) for seed in range(500)]
    waited = []
    for number, rows in enumerate(passed(reservoir(size, batch), blocks)):
        if number < 450:
            waited.append(number - (rows["game"][:, 0].astype(int) - size // batch))
    # Geometric, from 0: chance p = batch / (size + batch) at each draw, so mean (1 - p) / p = 10, deviation 10.5.
    waits = np.concatenate(waited[100:])
    assert abs(waits.mean() - 10) < 0.5
    assert abs(waits.std() - np.sqrt(110)) < 1


def test_one_row_is_as_likely_anywhere_in_a_batch() -> None:
    places = []
    for seed in range(400):
        first = next(passed(reservoir(1, 8, seed), [made.rows(9, 1)]))
        places.append(first["ply"].tolist())
    often = np.zeros((9, 8))
    for ply in places:
        often[ply, range(8)] += 1
    assert abs(often - 400 / 9).max() < 5 * np.sqrt(400 / 9)


def test_a_game_without_a_board() -> None:
    form = RowFormat((0, 0, 0), 2, 10)
    blocks = [made.rows(9, seed, form) for seed in range(3)]
    mixed = made.joined(*passed(reservoir(5, 4, form=form), blocks, form=form))
    assert mixed["planes"].shape == (27, 0)
    assert sorted(mixed["ply"].tolist()) == sorted([*range(9)] * 3)


@pytest.mark.parametrize("size", [1, 1000])
def test_nothing_comes(size: int) -> None:
    assert list(reservoir(size, 4).mix(Items([]))) == []
