"""Finished games on their way to the learner."""

import numpy as np

from tengen.cluster.actor import pack, unpack
from tests.helpers.fake_ray import finished


def test_games_of_several_calls_come_out_as_they_went_in_and_in_order() -> None:
    parts = [finished(1, 2, 5), finished(2, 1, 3)]
    chunk = pack(1, parts)
    assert (chunk.board, chunk.rows, chunk.games) == (1, 8, 3)
    found = unpack(chunk)
    assert (int(found.rows_count), int(found.games_count)) == (8, 3)
    for name in ("number", "seed", "action", "value", "length", "opening", "result"):
        expected = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(getattr(found, name), expected)
        assert getattr(found, name).dtype == expected.dtype
    for table in ("rows", "extra"):
        for key, values in getattr(parts[0], table).items():
            expected = np.concatenate([values, getattr(parts[1], table)[key]])
            np.testing.assert_array_equal(getattr(found, table)[key], expected)


def test_rows_that_are_only_written_come_last() -> None:
    parts = [finished(1, 2, 5, others=2), finished(2, 1, 3, others=1)]
    chunk = pack(0, parts)
    assert (chunk.rows, chunk.others) == (8, 3)
    found = unpack(chunk)
    assert (int(found.rows_count), int(found.others_count)) == (8, 3)
    assert found.rows["ply"].tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 5, 6, 3]


def test_games_without_rows() -> None:
    found = unpack(pack(0, [finished(1, 2, 0)]))
    assert len(found.rows["ply"]) == 0
    assert len(found.length) == 2
