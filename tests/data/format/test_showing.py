"""What is in a chunk, as people see it."""

import os
from pathlib import Path

import numpy as np
import pytest

from tengen import games
from tengen.data.format.chunk import ChunkError, write_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import UNKNOWN, RowFormat
from tengen.data.format.showing import show
from tests.helpers.train_samples import random_rows

GO = games.make("go", size=2)
HEADS = ("ownership", "score")


def test_a_chunk_of_go(tmp_path: Path) -> None:
    path = tmp_path / "chunk.npz"
    rows = random_rows(GO, 3, HEADS)
    planes = np.zeros((3, 2, 2, 12), bool)
    planes[..., 0] = planes[0, 0, 0, 1] = planes[0, 1, 1, 2] = True
    rows["planes"] = np.packbits(planes.reshape(3, -1), axis=-1)
    rows["policy"] = np.tile(np.array([0, 0.75, 0, 0, 0.25], np.float16), (3, 1))
    rows["policy_weight"] = np.array([1, 0, 1], np.float32)
    rows["outcome"] = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0]], np.float32)
    rows["to_play"] = np.array([1, 0, 0], np.int8)
    rows["search_value"][0], rows["weight"][0], rows["moves_left"][0] = -0.5, 1, 7
    rows["score"][0], rows["ownership"][0] = np.nan, UNKNOWN
    write_chunk(path, RowFormat.of(GO, HEADS), rows, GameIdentity.of(GO), network="net", more={"session": 3})
    text = "\n".join(show(path, 1))
    assert text.startswith(f"{path}: 3 rows of 1 games, ")
    assert 'notes:    {"session": 3}' in text
    assert "wins 33.3%, draws 33.3%, losses 33.3%" in text
    assert "  ownership        int8[2, 2]  2 rows have the target" in text
    assert text.endswith(
        """
row 0: game 00000000-00000000, move 1, player 1 to move
    A B
  2 O .
  1 . X
"""
        f"  scalars: {' '.join(f'{value:g}' for value in rows['scalars'][0])}\n"
        """  policy:  B2 75.0%, pass 25.0%
  outcome: win 0%, draw 0%, loss 100%; search value -0.500
  score:   unknown
  moves left: 7, weight: 1"""
    )
    assert "  policy:  none" in "\n".join(show(path, 3))


def test_planes_of_a_game_of_somebody_else(tmp_path: Path) -> None:
    """Nobody knows what they mean, so they are not shown as stones."""
    rows = random_rows(GO, 1)
    planes = np.zeros((1, 2, 2, 12), bool)
    planes[..., 0] = planes[0, 0, 0, 1] = planes[0, 0, 0, 5] = planes[0, 1, 1, 11] = True
    rows["planes"] = np.packbits(planes.reshape(1, -1), axis=-1)
    write_chunk(tmp_path / "a.npz", RowFormat.of(GO), rows, GameIdentity("mine:Game", 1, {}), network="net")
    text = "\n".join(show(tmp_path / "a.npz", 1))
    assert "as the player to move sees them\n   1  .\n   . 11\n" in text


def test_a_game_that_is_not_here_and_has_no_board(tmp_path: Path) -> None:
    game = games.make("hironaka", max_points=3)
    rows = random_rows(game, 2)
    rows["policy_weight"][:] = 1
    rows["policy"] = np.eye(game.num_actions, dtype=np.float16)[:2]
    write_chunk(tmp_path / "a.npz", RowFormat.of(game), rows, GameIdentity("unknown", 1, {}), network="net")
    text = "\n".join(show(tmp_path / "a.npz", 9))
    assert "  policy:  action 1 100.0%" in text
    assert text.count("\nrow ") == 2


def test_what_is_no_chunk(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "garbage").write_bytes(b"PK garbage")
    for name in ("fifo", "garbage", "none"):
        with pytest.raises(ChunkError, match=name):
            list(show(tmp_path / name, 1))
