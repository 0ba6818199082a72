"""Made-up training records of Lc0 with possible values."""

from pathlib import Path

import numpy as np

from tengen.data.format import lc0

REAL = Path(__file__).parents[3] / "shared" / "data" / "lc0"
"""Chunks of real games, where they are beside the clone."""


def made(count: int, seed: int = 0) -> np.ndarray:
    """A game of `count` records. Every third move number is legal, and three of them were visited."""
    numbers = np.random.default_rng(seed)
    records = np.zeros(count, lc0.RECORD)
    records["version"], records["input_format"] = 6, 1
    records["probabilities"] = -1
    for index, record in enumerate(records):
        record["probabilities"][index % 3 :: 3] = 0
        chosen = index % 3 + 3 * numbers.choice(600, 3, replace=False)
        record["probabilities"][chosen] = (0.5, 0.375, 0.125)
        record["best_idx"], record["played_idx"] = chosen[:2]
    records["planes"] = numbers.integers(0, 2**64, (count, 104), np.uint64)
    records["castling"] = numbers.integers(0, 2, (count, 4))
    records["black"] = np.arange(count) % 2
    records["rule_50"] = numbers.integers(0, 100, count)
    for name in ("root_q", "best_q", "played_q", "orig_q"):
        records[name] = numbers.uniform(-1, 1, count)
    records["plies_left"] = np.arange(count)[::-1]
    records["result_q"] = np.where(np.arange(count) % 2, -1, 1)
    records["visits"], records["policy_kld"] = 40, numbers.uniform(0.1, 1, count)
    return records
