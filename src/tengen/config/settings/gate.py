"""The section `gate`: which networks are accepted. See docs/gate.md."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tengen.schema import setting


@dataclass(frozen=True)
class GateSettings:
    kind: Literal["none", "share", "sprt"] = setting(
        "share", "accept every network, those that win a share of a match, or those that pass a sequential test"
    )
    games: int = setting(200, "most games of a match, in pairs with colours swapped", low=2, multiple_of=2, high=10**6)
    round_games: int = setting(64, "games played at once", low=2, multiple_of=2, high=10**5)
    simulations: int = setting(64, "simulations per move", low=1, high=30000)
    opening_moves: int = setting(4, "random moves at the start of each pair of games", low=0, high=100)
    share: float = setting(0.5, "share of the points that a new network needs; a draw is half a point", low=0, high=1)
    sprt_low: float = setting(0.0, "sprt: Elo gain at which a new network is rejected", low=-1000, high=1000)
    sprt_high: float = setting(20.0, "sprt: Elo gain at which a new network is accepted", low=-1000, high=1000)
    sprt_error: float = setting(0.05, "sprt: error rate of either verdict", low=0.0001, high=0.49)
    newest_first: bool = setting(False, "test the newest candidate first (false: the oldest)", before=False)
    most_waiting: int = setting(
        8, "candidates that may wait before the export waits too", low=1, high=10**6, before=10**6
    )

    def check_together(self) -> Iterator[tuple[str, str]]:
        if self.sprt_low >= self.sprt_high:
            yield "sprt_high", f"expected more than sprt_low, {self.sprt_low:g}, got {self.sprt_high:g}"
