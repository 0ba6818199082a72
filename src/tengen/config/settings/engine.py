"""What an engine is told. Nothing here needs JAX."""

from dataclasses import dataclass
from typing import Literal

from tengen.schema import setting

Precision = Literal["auto", "bfloat16", "float32"]


@dataclass(frozen=True)
class EngineSettings:
    """One engine that thinks about one game."""

    visits: int = setting(800, "visits per move, if neither they nor seconds are said", low=1, high=100_000_000)
    leaves: int | None = setting(None, "positions evaluated at once (null: from the device)", low=1, high=256)
    slots: int | None = setting(
        None, "positions that the tree keeps (null: half a GiB of them, at most 131072)", low=16, high=2**24
    )
    precision: Precision = setting("auto", "of the network: bfloat16 on accelerators, float32 on CPUs, or say which")
    c_init: float = setting(1.25, "exploration", low=0, high=100)
    virtual_loss: float = setting(1.0, "how much a position that is being evaluated counts as lost", low=0, high=100)


@dataclass(frozen=True)
class PlaySettings:
    """How an engine plays a game against somebody."""

    visits: int | None = setting(None, "visits per move (null: until the time is over)", low=1, high=100_000_000)
    seconds: float | None = setting(None, "seconds per move (null: what the clock allows)", low=0.001, high=1e6)
    resign: float = setting(0.05, "give up when the chance to win is below this, three times running", low=0, high=1)
    ponder: bool = setting(False, "think while the opponent does")
    lag: float = setting(0.5, "seconds of every move that are lost between clock and engine", low=0, high=60)
