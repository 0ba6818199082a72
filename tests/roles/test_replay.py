"""The replay buffer, against a list, and its frequencies, against their probabilities."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.errors import OptionError, TengenError
from tengen.roles import replay
from tengen.roles.replay import ReplayBuffer

_LIKE = {"number": jnp.int32(0), "pair": jnp.zeros(2)}


def _rows(first: int, count: int) -> dict[str, jax.Array]:
    numbers = jnp.arange(first, first + count)
    return {"number": numbers, "pair": jnp.stack([numbers, -numbers], 1).astype(jnp.float32)}


@pytest.mark.parametrize("prioritised", [False, True])
def test_the_newest_are_kept(prioritised: bool) -> None:
    buffer, expected = ReplayBuffer(_LIKE, 10, prioritised=prioritised), []
    for first, count in ((0, 4), (4, 4), (8, 7), (15, 25)):
        buffer.add(_rows(first, count))
        expected = [*expected, *range(first, first + count)][-10:]
        drawn = buffer.sample(jax.random.key(first), 400)
        assert set(drawn.rows["number"].tolist()) == set(expected)
        np.testing.assert_array_equal(drawn.rows["pair"][:, 1], -drawn.rows["number"])
        np.testing.assert_array_equal(buffer.state.ring.rows["number"][drawn.places], drawn.rows["number"])
        np.testing.assert_array_equal(drawn.weights, 1.0)
        assert len(buffer) == len(expected)


def test_priorities_are_frequencies() -> None:
    alpha, beta, least = 0.7, 0.5, 0.01
    buffer = ReplayBuffer(_LIKE, 8, prioritised=True, alpha=alpha, least=least)
    buffer.add(_rows(0, 5))
    errors = np.array([0.0, 1.0, -2.0, 0.5, 4.0])
    buffer.update_priorities(jnp.arange(5), jnp.asarray(errors))
    powered = (np.abs(errors) + least) ** alpha
    chances = powered / powered.sum()
    drawn = buffer.sample(jax.random.key(0), 50_000, beta)
    counts = np.bincount(drawn.rows["number"], minlength=5)
    np.testing.assert_allclose(counts / 50_000, chances, atol=2e-3)
    weights = (5 * chances) ** -beta
    weights /= weights.max()
    np.testing.assert_allclose(drawn.weights, weights[np.asarray(drawn.rows["number"])], rtol=1e-4)
    buffer.add(_rows(5, 1))  # as urgent as the most urgent so far
    assert float(buffer.state.priorities[5]) == pytest.approx(powered.max())
    assert float(buffer.state.priorities[6:].sum()) == 0


def test_small_batches_are_fair_too() -> None:
    """The ranges of a batch cover all of it: none is favoured for its place."""
    buffer = ReplayBuffer(_LIKE, 3, prioritised=True, alpha=1.0, least=1e-6)
    buffer.add(_rows(0, 3))
    buffer.update_priorities(jnp.arange(3), jnp.array([1.0, 2.0, 5.0]))
    keys = jax.random.split(jax.random.key(1), 2000)
    found = jax.vmap(lambda key: replay.draw(buffer.state, key, 2).places)(keys)
    np.testing.assert_allclose(np.bincount(found.reshape(-1)) / found.size, np.array([1, 2, 5]) / 8, atol=0.02)


def test_saved_and_restored(tmp_path: Path) -> None:
    buffer = ReplayBuffer(_LIKE, 6, prioritised=True)
    buffer.add(_rows(0, 5))
    buffer.add(_rows(5, 4))
    buffer.update_priorities(jnp.array([1, 4]), jnp.array([3.0, 0.1]))
    buffer.save(tmp_path / "buffer.safetensors")
    again = ReplayBuffer(_LIKE, 6, prioritised=True, alpha=0.9, least=0.5)
    again.load(tmp_path / "buffer.safetensors")
    assert (again.alpha, again.least) == (buffer.alpha, buffer.least) == (0.6, 1e-3)
    jax.tree.map(np.testing.assert_array_equal, again.state, buffer.state)
    one, other = (b.sample(jax.random.key(3), 20, 0.4) for b in (buffer, again))
    jax.tree.map(np.testing.assert_array_equal, one, other)
    assert again.total == 9


def test_files_that_are_no_such_buffer(tmp_path: Path) -> None:
    buffer, path = ReplayBuffer(_LIKE, 6), tmp_path / "buffer.safetensors"
    with pytest.raises(TengenError, match="there is no such file"):
        buffer.load(path)
    buffer.add(_rows(0, 3))
    buffer.save(path)
    whole = path.read_bytes()
    for damaged in (b"", b"garbage" * 30, whole[:-5], whole[:40]):
        path.write_bytes(damaged)
        with pytest.raises(TengenError, match="not a whole safetensors file"):
            buffer.load(path)
    path.write_bytes(whole)
    with pytest.raises(TengenError, match="of another replay buffer"):
        ReplayBuffer(_LIKE, 7).load(path)
    with pytest.raises(TengenError, match="of another replay buffer"):
        ReplayBuffer({"number": jnp.int32(0)}, 6).load(path)
    with pytest.raises(TengenError, match="of another replay buffer"):
        ReplayBuffer(_LIKE, 6, prioritised=True).load(path)
    assert len(buffer) == 3
    with pytest.raises(TengenError, match="cannot be written"):
        buffer.save(tmp_path / "none" / "buffer.safetensors")


def test_samples_that_do_not_fit() -> None:
    buffer = ReplayBuffer(_LIKE, 6)
    with pytest.raises(TengenError, match="is empty"):
        buffer.sample(jax.random.key(0), 2)
    with pytest.raises(OptionError, match="expected the arrays number, pair, got number"):
        buffer.add({"number": jnp.arange(2)})
    with pytest.raises(OptionError, match="pair: expected"):
        buffer.add({"number": jnp.arange(2), "pair": jnp.zeros((2, 3))})
    with pytest.raises(OptionError, match="the same number in every array"):
        buffer.add({"number": jnp.arange(2), "pair": jnp.zeros((3, 2))})
    with pytest.raises(OptionError, match="capacity: expected a whole number from 1"):
        ReplayBuffer(_LIKE, 0)
    with pytest.raises(OptionError, match="at least one array"):
        ReplayBuffer({}, 1)
