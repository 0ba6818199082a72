"""How long a compiled function takes."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax


def median_seconds(function: Callable[..., Any], *args: Any, repeats: int) -> float:
    """The median over `repeats` calls; each waits until the device has finished.

    Two calls come before: one that compiles, and one that finds the memory as every later call does.
    """
    for _ in range(2):
        jax.block_until_ready(function(*args))
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(function(*args))
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
