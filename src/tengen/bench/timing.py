"""How long compiled functions take."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

Clock = Callable[[], float]


@dataclass(frozen=True)
class Timing:
    """The times of repeated calls, in seconds and in the order of the calls."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def noise(self) -> float:
        """Half the distance between the slowest and the fastest call, as a share of the median."""
        return spread(self.seconds)

    def share_of(self, other: "Timing") -> tuple[float, float]:
        """The median of this time divided by the other's, call by call, and its noise."""
        shares = [mine / theirs for mine, theirs in zip(self.seconds, other.seconds, strict=True)]
        return statistics.median(shares), spread(shares)


def spread(values: tuple[float, ...] | list[float]) -> float:
    """Half the distance between the largest and the smallest, as a share of the median."""
    return (max(values) - min(values)) / 2 / statistics.median(values)


def in_turn(
    functions: Mapping[str, Callable[[], Any]], repeats: int, now: Clock = time.perf_counter
) -> dict[str, Timing]:
    """Call the functions in turn, `repeats` times each; a call ends when the device has finished.

    They take turns because a device slows down after seconds of work, and a busy machine should be busy for all. Two
    rounds come before those that count: one that compiles, and one that finds caches, memory and clocks as every later
    one does, so that one repeat measures the same as five.
    """
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(2 + repeats):
        for name, function in functions.items():
            start = now()
            jax.block_until_ready(function())
            if number >= 2:
                seconds[name].append(now() - start)
    return {name: Timing(tuple(found)) for name, found in seconds.items()}


def median_seconds(function: Callable[..., Any], *args: Any, repeats: int) -> float:
    """The median over `repeats` calls, see `in_turn`."""
    return in_turn({"one": lambda: function(*args)}, repeats)["one"].median
