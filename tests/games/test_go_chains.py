"""What a colour reaches on a board: by products, as on GPUs, and step by step, as elsewhere."""

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

from tengen.games import go_chains


def _spiral(size: int) -> np.ndarray:
    """Empty points that wind to the middle between walls: the longest way that a square board has room for."""
    board = np.ones((size, size), bool)
    row, column, turn, steps = 0, -1, 0, size
    while steps > 0:
        down, right = ((0, 1), (1, 0), (0, -1), (-1, 0))[turn % 4]
        for _ in range(steps):
            row, column = row + down, column + right
            board[row, column] = False
        turn += 1
        steps = size - 1 if turn < 3 else steps - 2 * (turn % 2)
    return ~board.ravel()


def _slowly(stones: np.ndarray, empty: np.ndarray, size: int) -> list[set[int]]:
    """The points that each colour has or reaches, one after the other."""
    found = []
    for colour in stones:
        todo = [int(point) for point in np.flatnonzero(colour)]
        seen = set(todo)
        while todo:
            row, column = divmod(todo.pop(), size)
            for y, x in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
                point = y * size + x
                if 0 <= y < size and 0 <= x < size and empty[point] and point not in seen:
                    seen.add(point)
                    todo.append(point)
        found.append(seen)
    return found


WAYS: dict[str, Any] = {
    "at once": lambda size: partial(go_chains.reached_at_once, size=size),
    "step by step": lambda size: partial(go_chains.reached_step_by_step, size=size),
    "on a GPU": go_chains.reached_on_gpu,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [2, 3, 9, 19])
def test_points_that_are_reached(way: str, size: int) -> None:
    draw = np.random.default_rng(size)
    owner = draw.choice(3, (12, size * size), p=(0.5, 0.3, 0.2))  # empty, black, white
    owner[:6][draw.random((6, size * size)) < 0.6] = 0
    owner[0], owner[1, 1:], owner[1, 0] = 0, 0, 2
    winding = _spiral(size)
    owner[2] = np.where(winding, 0, 2)
    owner[2, 0] = 1  # where the way begins
    stones = np.stack([owner == 1, owner == 2], 1)
    wanted = np.arange(len(owner)) != 7
    found = np.asarray(jax.jit(jax.vmap(WAYS[way](size)))(stones, owner == 0, wanted))
    for board in np.flatnonzero(wanted):
        assert [set(map(int, np.flatnonzero(reach))) for reach in found[board]] == _slowly(
            stones[board], owner[board] == 0, size
        )
    assert found[2, 0].sum() == winding.sum()
    assert size < 9 or winding.sum() > size * size / 2


def test_many_large_boards_are_not_multiplied() -> None:
    """Products on 4,096 boards of 19x19 would need gigabytes."""

    def products(boards: int, size: int) -> int:
        stones, points = jax.ShapeDtypeStruct((boards, 2, size**2), bool), jax.ShapeDtypeStruct((boards, size**2), bool)
        wanted = jax.ShapeDtypeStruct((boards,), bool)
        made = jax.make_jaxpr(jax.vmap(go_chains.reached_on_gpu(size)))(stones, points, wanted)
        return str(made).count("dot_general")

    assert products(4096, 9) == 8
    assert products(256, 19) == 10
    assert products(4096, 19) == 0
