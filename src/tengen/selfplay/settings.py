"""What self-play is told."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tengen.schema import setting


@dataclass(frozen=True)
class SelfplaySettings:
    """How games are played to learn from. The defaults suit one GPU; a configuration spells all of them out."""

    games: int = setting(4096, "how many games the device plays at once", low=1, high=1_000_000)
    full_share: float = setting(
        0.25, "share of the moves that get a full search; only those teach a policy", low=0.01, high=1
    )
    cheap_simulations: int = setting(8, "simulations of the other searches", low=1, high=30000)
    decided_value: float = setting(
        1.0, "a game is decided once several searches in a row give the same player at least this value", low=0, high=1
    )
    decided_full_share: float = setting(
        1.0,
        "share of full_share that is left when a game is decided (1: decided or not, it makes no difference)",
        low=0,
        high=1,
    )
    cheap_weight: float = setting(
        0.0, "weight of the rows of cheap searches, which teach results alone (0: they are not kept)", low=0, high=1
    )
    reuse: bool = setting(True, "keep what the search knows below the move that was made")
    opening_moves: int = setting(4, "a game begins with a number of random moves, at most so many", low=0, high=100)
    temperature: float = setting(1.0, "of the choice of the first move (0: the best one)", low=0, high=10)
    last_temperature: float = setting(0.1, "what the temperature falls to", low=0, high=10)
    halving_plies: float = setting(8.0, "plies in which it comes half as close to that", low=0.1, high=1000)
    komi_spread: float = setting(0.0, "Go: standard deviation of komi about the game's own", low=0, high=100)

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for what does not go together."""
        if self.last_temperature > self.temperature:
            yield "last_temperature", f"expected at most temperature, {self.temperature}, got {self.last_temperature}"


def stride(simulations: int, settings: SelfplaySettings, leaves: int = 1) -> int:
    """After how many steps, of `leaves` simulations each, searches may end: so that both kinds do, and none waits."""
    full, cheap = (-(-count // leaves) for count in (simulations, settings.cheap_simulations))
    always_full = settings.full_share == 1 and settings.decided_full_share == 1
    return full if always_full else math.gcd(full, cheap)
