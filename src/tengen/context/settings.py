"""The options of a context."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tengen.data.format.rows import EXTRAS
from tengen.schema import setting


@dataclass(frozen=True)
class ContextSettings:
    """The options of `GameContext`."""

    num_games: int = setting(64, "games that are played at once", low=1, high=1_000_000)
    batch_size: int = setting(64, "positions in a batch", low=1, high=1_000_000)
    temperature: float = setting(0.0, "of the choice of moves (0: the best one)", low=0, high=10)
    temperature_moves: int | None = setting(
        None, "moves of a game that are chosen at that temperature, the others are the best (null: all)", low=0
    )
    opening_moves: int = setting(0, "a game begins with up to this many random moves", low=0, high=100)
    reuse: bool = setting(True, "keep what the search knows below the move that was made")
    total_games: int | None = setting(None, "games to play in all (null: until it is stopped)", low=1, high=2**31)
    seed: int = setting(0, "of all random numbers", low=0, high=2**32 - 1)
    arrays: Literal["numpy", "jax"] = setting(
        "numpy", "planes, scalars and replies on the host, or as JAX arrays on the device of the games, for DLPack"
    )
    replay_rows: int | None = setting(
        None,
        "newest rows that are kept, and drawn from for train (null: each row comes once, in order)",
        low=1,
        high=2**30,
    )
    samples_per_row: float = setting(4.0, "rows drawn for train for each new row", low=0.01, high=1000)
    min_rows: int = setting(0, "rows before the first batch is drawn for train", low=0)
    steps_per_version: int = setting(100, "batches for train between two calls of train_control", low=1)
    targets: tuple[str, ...] = setting(
        (), f"more fields of the rows to learn from: {', '.join(EXTRAS)}, and other targets of the game"
    )

    def check_together(self) -> Iterator[tuple[str, str]]:
        if self.min_rows and self.replay_rows is None:
            yield "min_rows", "only for rows that are kept: set replay_rows, too"
