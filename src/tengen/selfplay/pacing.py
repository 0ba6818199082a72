"""How much work one call hands to the device: about a second's, so that a person sees what goes on and can stop it."""

import math
from dataclasses import dataclass, replace

_FASTER = 4.0  # a call has at most so many times the work of the one before


@dataclass(frozen=True)
class Pace:
    """The work of the next call, learned from how long calls take. The first one also compiles, which says nothing."""

    seconds: float  # that a call should take
    amount: float = 1.0
    most: float = math.inf
    calls: int = 0

    @property
    def units(self) -> int:
        """Whole units of work for the next call, at least one."""
        return max(1, round(min(self.amount, self.most)))

    def after(self, units: int, seconds: float) -> "Pace":
        """Having seen a call of so many units take so long."""
        if self.calls == 0:
            return replace(self, calls=1)
        wanted = min(max(units * self.seconds / max(seconds, 1e-6), 1.0), self.most)
        # A call with less work than it might have had tells nothing about more.
        amount = min(wanted, _FASTER * units) if units >= self.units else min(wanted, self.amount)
        return replace(self, amount=amount, calls=self.calls + 1)
