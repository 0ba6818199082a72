"""How much work a call to the device gets: about a second's, so that progress is seen and a run can be stopped.

On a CPU, that also limits the games that are played at once.
"""

import math
from dataclasses import dataclass, replace

FEWEST_GAMES = 32  # of a lane on a CPU: networks are slow if they evaluate only a few positions at once
CORE_SPEED = 2e10  # operations per second of a core, roughly: 1.3e10 for b3c32 on an old one, 1e11 on a new one
_SIMULATION = 0.5  # seconds that one simulation of all games may take on a CPU
_FASTER = 4.0  # the largest factor by which the work of a call may grow


@dataclass(frozen=True)
class Pace:
    """The work of the next call, estimated from timed calls. The first one also compiles, and is not counted."""

    seconds: float  # the duration of a call to aim for
    amount: float = 1.0
    most: float = math.inf
    calls: int = 0

    @property
    def units(self) -> int:
        """Whole units of work for the next call, at least one."""
        return max(1, round(min(self.amount, self.most)))

    def after(self, units: int, seconds: float) -> "Pace":
        """Update the estimate from one timed call."""
        if self.calls == 0:
            return replace(self, calls=1)
        wanted = min(max(units * self.seconds / max(seconds, 1e-6), 1.0), self.most)
        # A call with less work than allowed says nothing about larger ones.
        amount = min(wanted, _FASTER * units) if units >= self.units else min(wanted, self.amount)
        return replace(self, amount=amount, calls=self.calls + 1)


def games_on_cpu(games: int, operations: float, cores: int) -> int:
    """How many of `games` a CPU plays at once, if the network needs this many operations for a position.

    A CPU evaluates thousands of positions no faster than dozens, so more games at once would only make it longer until
    the first move is made and the first game ends.
    """
    step = FEWEST_GAMES * max(cores, 1)  # all cores have as many
    most = int(_SIMULATION * CORE_SPEED * max(cores, 1) / max(operations, 1))
    return min(games, max(most - most % step, step))
