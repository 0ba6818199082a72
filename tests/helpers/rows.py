"""Rows full of random numbers that could be true, and what the tests of this room share."""

from typing import Any

import numpy as np

from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat, Rows

FORM = RowFormat((3, 3, 5), 2, 10, ("opponent_policy", "ownership", "score"))  # 45 bits: three are spare
PLAIN = RowFormat((3, 3, 5), 2, 10)
GAME = GameIdentity("go", 1, {"size": 3, "komi": 7.0, "max_moves": None})
ELSE = GameIdentity("go", 1, {"size": 3, "komi": 6.5, "max_moves": None})


def rows(count: int, seed: int = 0, form: RowFormat = FORM) -> Rows:
    """Row n belongs to game n // 4, and its ply is n."""
    draw = np.random.default_rng(seed)

    def policy() -> Any:
        return draw.dirichlet(np.ones(form.num_actions), count).astype(np.float16)

    height, width, planes = form.planes_shape
    weight = (draw.random(count) < 0.5).astype(np.float32)
    made: Rows = {
        "planes": np.packbits(draw.random((count, height * width * planes)) < 0.5, axis=-1),
        "scalars": draw.normal(size=(count, form.num_scalars)).astype(np.float32),
        "policy": policy() * weight[:, None].astype(np.float16),
        "policy_weight": weight,
        "outcome": np.eye(3, dtype=np.float32)[draw.integers(0, 3, count)],
        "search_value": draw.uniform(-1, 1, count).astype(np.float32),
        "to_play": draw.integers(0, 2, count).astype(np.int8),
        "ply": np.arange(count).astype(np.int16),
        "moves_left": draw.integers(0, 99, count).astype(np.int16),
        "weight": draw.random(count).astype(np.float32),
        "game": np.stack([np.full(count, seed), np.arange(count) // 4], -1).astype(np.uint32),
        "opponent_policy": policy(),
        "opponent_weight": np.ones(count, np.float32),
        "ownership": draw.integers(-1, 2, (count, height, width)).astype(np.int8),
        "score": draw.normal(size=count).astype(np.float32),
    }
    return {name: made[name] for name in form.fields}


def same(left: Rows, right: Rows) -> bool:
    """Whether these are the same rows, bit for bit."""
    return set(left) == set(right) and all(
        left[name].dtype == right[name].dtype and np.array_equal(left[name], right[name]) for name in left
    )


def joined(*blocks: Rows) -> Rows:
    """All rows, one after the other."""
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
