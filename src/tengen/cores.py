"""The CPU cores of this machine that Tengen may use."""

import os


def cores() -> tuple[int, ...]:
    """The numbers of the CPU cores available to this process."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))
