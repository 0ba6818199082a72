"""Lc0's encoding of chess."""

import numpy as np

from tengen.games import chess_lc0 as lc0


def test_moves_are_numbered_as_in_lc0() -> None:
    assert len(lc0.MOVES) == len(set(lc0.MOVES)) == 1858
    known = {"a1b1": 0, "a1a2": 7, "h8g8": 1791, "a7a8q": 1792, "a7a8r": 1793, "a7a8b": 1794, "h7h8b": 1857}
    assert {name: lc0.INDEX[name] for name in known} == known
    assert lc0.INDEX["e1h1"] in range(1792)  # castling
    assert "a1b4" not in lc0.INDEX
    assert "a7a8n" not in lc0.INDEX


def test_squares_of_a_move_make_its_name() -> None:
    for number in range(0, 1858, 37):
        letter = ["", "q", "r", "b"][lc0.PROMOTION[number]]
        name = lc0.SQUARES[lc0.FROM[number]] + lc0.SQUARES[lc0.TO[number]] + letter
        assert name == lc0.MOVES[number]


def test_every_move_has_a_cell_in_both_policy_heads() -> None:
    assert len(set(lc0.CONVOLUTION)) == len(set(lc0.ATTENTION)) == 1858
    assert lc0.CONVOLUTION.max() < 73 * 64
    assert lc0.ATTENTION.max() < lc0.ATTENTION_LOGITS
    e2, g1 = lc0.SQUARES.index("e2"), lc0.SQUARES.index("g1")
    assert lc0.CONVOLUTION[lc0.INDEX["e2e4"]] == 1 * 64 + e2  # north by two
    assert lc0.CONVOLUTION[lc0.INDEX["g1f3"]] == 63 * 64 + g1  # the last of the knight's jumps
    assert lc0.CONVOLUTION[lc0.INDEX["b7c8q"]] == (64 + 3 * 2 + 2) * 64 + lc0.SQUARES.index("b7")
    assert lc0.ATTENTION[lc0.INDEX["b7c8r"]] == 4096 + 24 + 2 * 3 + 1


def test_observation_and_inputs_hold_the_same() -> None:
    rng = np.random.default_rng(5)
    history = rng.random((3, 104, 8, 8)) < 0.3
    castling = np.array([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 0, 1]], bool)
    black, count = np.array([0, 1, 1], bool), np.array([0, 17, 100])
    seen = lc0.observation(history, castling, black, count)
    assert seen.planes.shape == (3, 8, 8, lc0.PLANES)
    assert seen.planes[..., 0].all()
    np.testing.assert_array_equal(seen.scalars[:, 0], (count / np.float32(99)).astype(np.float32))
    planes = lc0.inputs(seen)
    assert planes.shape == (3, lc0.INPUTS, 8, 8)
    np.testing.assert_array_equal(planes[:, :104], history)
    np.testing.assert_array_equal(planes[:, 104:109, 2, 5], np.concatenate([castling, black[:, None]], 1))
    np.testing.assert_array_equal(planes[:, 109, 7, 0], count)
    assert not planes[:, 110].any()
    assert planes[:, 111].all()
    np.testing.assert_allclose(lc0.inputs(seen, 99)[:, 109, 0, 0], count / 99)


def test_boards_of_training_records() -> None:
    boards = np.zeros((1, 104), np.uint64)
    boards[0, 3] = np.uint64(0x80)  # the first byte is rank 1, its highest bit file a
    boards[0, 4] = np.uint64(1) << np.uint64(56)
    planes = lc0.unpack(boards)
    assert np.argwhere(planes[0]).tolist() == [[3, 0, 0], [4, 7, 7]]
    np.testing.assert_array_equal(lc0.pack(planes), boards)
