"""How long a compiled function takes."""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
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


def kernel_times(function: Callable[[], Any]) -> dict[str, list[float]]:
    """The kernels that a GPU runs during a call, by name: the microseconds of each run. Empty without a GPU."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(function())
        (path,) = Path(folder).rglob("*.xplane.pb")
        data = jax.profiler.ProfileData.from_file(str(path))
    found: dict[str, list[float]] = {}
    for plane in data.planes:
        for line in plane.lines if "GPU" in plane.name else ():
            for event in line.events if (line.name or "").startswith("Stream") else ():
                found.setdefault(event.name, []).append(event.duration_ns / 1000)
    return found
