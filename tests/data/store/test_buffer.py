"""The ring on the device against a list of rows on the host."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tengen.data.format.rows import Rows
from tengen.data.store import buffer
from tests.helpers import rows

CAPACITY, BLOCK = 11, 6
append = jax.jit(buffer.append, donate_argnums=0)
sample = partial(jax.jit, static_argnums=2)(buffer.sample)


def rows_of(first: int, count: int) -> Rows:
    """Rows with plies from `first` on, padded with rubbish to a block."""
    block = rows.rows(BLOCK, seed=first % 1000)
    block["ply"] = (first + np.arange(BLOCK)).astype(np.int16)
    block["ply"][count:] = -7
    return block


@given(st.lists(st.integers(0, BLOCK), max_size=12), st.integers(0, 15))
@settings(max_examples=40)
def test_appending_wraps(counts: list[int], wanted: int) -> None:
    held = buffer.make(rows.FORM, CAPACITY)
    expected = rows.rows(0)
    for count in counts:
        first = len(expected["ply"])
        block = rows_of(first, count)
        held = append(held, block, count)
        expected = rows.joined(expected, {name: values[:count] for name, values in block.items()})
    total = sum(counts)
    assert buffer.total(held) == total
    assert int(held.filled) == min(total, CAPACITY)
    kept = min(wanted, total, CAPACITY)
    assert rows.same(buffer.newest(held, wanted), {k: v[total - kept :] for k, v in expected.items()})


def test_a_block_as_large_as_the_ring() -> None:
    held = buffer.make(rows.FORM, BLOCK)
    for first in (0, 4, 10):
        held = append(held, rows_of(first, BLOCK), BLOCK)
        assert buffer.newest(held, BLOCK)["ply"].tolist() == list(range(first, first + BLOCK))
    with pytest.raises(ValueError, match="6 rows does not fit a ring of 5"):
        buffer.append(buffer.make(rows.FORM, 5), rows_of(0, 6), 6)


def test_counts_out_of_range() -> None:
    held = append(buffer.make(rows.FORM, CAPACITY), rows_of(0, BLOCK), 99)
    assert buffer.total(held) == BLOCK
    held = append(held, rows_of(6, BLOCK), -5)
    assert buffer.total(held) == BLOCK
    assert buffer.newest(held, 9)["ply"].tolist() == list(range(6))


def test_other_fields() -> None:
    with pytest.raises(ValueError, match="expected the fields"):
        buffer.append(buffer.make(rows.FORM, CAPACITY), rows.rows(3, form=rows.PLAIN), 3)
    with pytest.raises(ValueError, match="capacity: expected"):
        buffer.make(rows.FORM, 0)


def filled(total: int) -> buffer.RowBuffer:
    held = buffer.make(rows.FORM, CAPACITY)
    for first in range(0, total, BLOCK):
        count = min(BLOCK, total - first)
        held = append(held, rows_of(first, count), count)
    return held


@pytest.mark.parametrize(
    ("total", "window", "expected"),
    [
        (4, 3, range(1, 4)),
        (4, 99, range(4)),
        (30, 99, range(19, 30)),
        (30, 5, range(25, 30)),
        (30, 1, [29]),
        (1, 1, [0]),
    ],
)
def test_samples_come_evenly_from_the_newest(total: int, window: int, expected: range) -> None:
    held = filled(total)
    drawn = np.asarray(sample(held, jax.random.key(5), 4000, window)["ply"])
    counts = [int((drawn == ply).sum()) for ply in expected]
    assert sum(counts) == 4000
    mean = 4000 / len(expected)
    assert all(abs(count - mean) < 6 * mean**0.5 for count in counts)  # six deviations, and the key is fixed


def test_samples_are_whole_rows() -> None:
    held = filled(30)
    everything = buffer.newest(held, CAPACITY)
    drawn = {name: np.asarray(values) for name, values in sample(held, jax.random.key(1), 64, 8).items()}
    places = [int(np.flatnonzero(everything["ply"] == ply)[0]) for ply in drawn["ply"]]
    assert rows.same(drawn, {name: values[places] for name, values in everything.items()})


def test_draws_depend_on_the_key_alone() -> None:
    held = filled(30)
    one, same, other = (sample(held, jax.random.key(k), 64, 8)["ply"] for k in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any()


def test_an_empty_ring_gives_rows_without_weight() -> None:
    drawn = sample(buffer.make(rows.FORM, CAPACITY), jax.random.key(0), 5, 100)
    assert all(not values.any() for values in drawn.values())
    assert buffer.newest(buffer.make(rows.FORM, CAPACITY), 3)["policy"].shape == (0, 10)


def test_more_than_32_bits_of_rows() -> None:
    held = filled(30)
    held = held._replace(words=jnp.array([3, 2**32 - 4], jnp.uint32))
    held = append(held, rows_of(30, 6), 6)
    assert buffer.total(held) == (4 << 32) + 2
    assert held.words.dtype == jnp.uint32
    held = append(held, rows_of(36, 6), 6)
    assert buffer.total(held) == (4 << 32) + 8
    assert buffer.newest(held, 3)["ply"].tolist() == [39, 40, 41]


def test_a_donated_ring_is_written_in_place() -> None:
    capacity = 100_000
    held = buffer.make(rows.FORM, capacity)
    memory = append.lower(held, rows_of(0, 6), 6).compile().memory_analysis()
    size = buffer.bytes_needed(rows.FORM, capacity)
    assert memory.alias_size_in_bytes >= size
    assert memory.temp_size_in_bytes < size / 100


def test_compiles_once() -> None:
    before = append._cache_size()
    held = buffer.make(rows.FORM, CAPACITY + 1)
    for first in range(0, 50, 7):
        held = append(held, rows_of(first, first % 6), jnp.int32(first % 6))
    assert append._cache_size() == before + 1


def test_can_be_made_inside_jit() -> None:
    held = jax.jit(lambda: buffer.make(rows.FORM, CAPACITY))()
    assert buffer.total(append(held, rows_of(0, 6), 6)) == 6
