"""Pooling by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from tengen.nets.board import BoardMask


def test_pools_of_two_boards_in_one_batch() -> None:
    on = np.zeros((2, 4, 4, 1), bool)
    on[0, :2, :2] = True  # 4 points, side 2
    on[1] = True  # 16 points, side 4
    x = np.full((2, 4, 4, 1), -100.0, np.float32)
    x[0, :2, :2, 0] = [[1, 2], [3, -6]]
    x[1, :, :, 0] = np.arange(16).reshape(4, 4) - 20
    board = BoardMask.of(jnp.asarray(on), full=False)
    np.testing.assert_allclose(board.mean(jnp.asarray(x)), [[0.0], [-12.5]])
    pools = [[0, 0 * -1.2, 3], [-12.5, -12.5 * -1.0, -5]]
    np.testing.assert_allclose(board.pool(jnp.asarray(x)), pools, rtol=1e-6)
    scaled = board.scaled(jnp.asarray([[2.0], [3.0]]))
    np.testing.assert_allclose(scaled, [[2, 2 * -1.2, 2 * (1.44 - 0.1)], [3, -3.0, 3 * (1.0 - 0.1)]], rtol=1e-6)
    mean, variance = board.moments(jnp.asarray(x))
    values = np.concatenate([x[0, :2, :2].reshape(-1), x[1].reshape(-1)])
    np.testing.assert_allclose([mean[0], variance[0]], [values.mean(), values.var()], rtol=1e-5)


def test_a_full_board_needs_no_mask() -> None:
    x = jnp.asarray(np.random.default_rng(0).normal(size=(2, 9, 9, 3)), jnp.float32)
    full, masked = (BoardMask.of(jnp.ones((2, 9, 9, 1), bool), full) for full in (True, False))
    assert full.on is None
    assert full.hide(x) is x
    np.testing.assert_allclose(full.pool(x), masked.pool(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(full.side, -0.5)


def test_the_maximum_teaches_the_point_where_it_is() -> None:
    x = np.zeros((1, 2, 2, 2), np.float32)
    x[0, :, :, 0] = [[1, 5], [2, 9]]
    x[0, :, :, 1] = [[-4, -3], [-2, 0]]
    on = np.ones((1, 2, 2, 1), bool)
    on[0, 1, 1] = False  # the largest of all is not on the board
    board = BoardMask.of(jnp.asarray(on), full=False)
    change = np.asarray(jax.grad(lambda x: (board.pool(x)[0, 4:] * jnp.asarray([2.0, 3.0])).sum())(jnp.asarray(x)))
    np.testing.assert_array_equal(change[0, :, :, 0], [[0, 2], [0, 0]])
    np.testing.assert_array_equal(change[0, :, :, 1], [[0, 0], [3, 0]])
