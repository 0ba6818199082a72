"""How long a compiled function takes."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax


def median_seconds(function: Callable[..., Any], *args: Any, repeats: int) -> float:
    """The median over `repeats` calls, after one that compiles; each waits until the device has finished."""
    jax.block_until_ready(function(*args))
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(function(*args))
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
