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
