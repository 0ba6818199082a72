"""How much work a call to the device gets: about a second's, so that progress is seen and a run can be stopped."""

import math
from dataclasses import dataclass, replace

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
