"""Rows leave the reservoir whole, once each, and evenly mixed."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.data.format.rows import RowFormat, Rows
from tengen.data.loader.batches import Batches
from tengen.data.loader.reservoir import Reservoir
from tests.helpers import rows as made


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
