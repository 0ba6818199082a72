"""What the parts of the ring are told. A configuration spells all of it out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tengen.schema import setting


@dataclass(frozen=True)
class PipelineSettings:
    """How the parts work together; the fused loop needs none of it. See docs/pipeline.md."""

    selfplay_rows: int = setting(20_000, "sync: rows that self-play adds in each round", low=1, high=10**9)
    selfplay_games: int | None = setting(
        None, "sync: games that self-play adds in each round, if that is sooner (null: rows alone decide)", low=1
    )
    switch_in_game: bool = setting(
        True,
        "running games go on with a newer network (false: they end with the one that began them, which costs time)",
    )
    shuffle_rows: int = setting(20_000, "async: new rows before the next shuffle", low=1, high=10**9)
    samples_per_epoch: int = setting(
        200_000, "samples of an epoch; losses are validated after each", low=1, high=10**10
    )
    epochs_per_export: int = setting(1, "epochs between two networks", low=1, high=10**6)
    validation_rows: int = setting(8192, "rows that a validation looks at, at most (0: none)", low=0, high=10**8)
    poll_seconds: float = setting(2.0, "seconds between two looks at what is waited for", low=0.01, high=3600)


@dataclass(frozen=True)
class GateSettings:
    """Which networks are accepted. See docs/gate.md."""

    kind: Literal["none", "share", "sprt"] = setting(
        "share", "accept every network, those that win their share, or those that pass a sequential test"
    )
    games: int = setting(
        200, "games of a match at most, in pairs with colours swapped", low=2, multiple_of=2, high=10**6
    )
    round_games: int = setting(64, "games that are played at once", low=2, multiple_of=2, high=10**5)
    simulations: int = setting(64, "simulations per move", low=1, high=30000)
    opening_moves: int = setting(4, "random moves at the start of a pair", low=0, high=100)
    share: float = setting(0.5, "share of the points that a new network needs; a draw is half a point", low=0, high=1)
    sprt_low: float = setting(
        0.0, "sprt: Elo above the old network at which a new one is rejected", low=-1000, high=1000
    )
    sprt_high: float = setting(
        20.0, "sprt: Elo above the old network at which a new one is accepted", low=-1000, high=1000
    )
    sprt_error: float = setting(0.05, "sprt: how often either verdict may be wrong", low=0.0001, high=0.49)

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for what does not go together."""
        if self.sprt_low >= self.sprt_high:
            yield "sprt_high", f"expected more than sprt_low, {self.sprt_low:g}, got {self.sprt_high:g}"
