"""Chunks are drawn in random order, each as often as the others, and each row of a chunk as often as the others."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.data.loader.channels import ChannelClosed, ChannelEnded
from tengen.data.loader.pool import Arrived, Picked, Pool


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
