"""The CPU cores of this machine that Tengen may use."""

import os

LIMIT = "TENGEN_CORES"
"""The environment variable with the most cores that a process may use, for processes that share a machine."""


def cores() -> tuple[int, ...]:
    """The numbers of the CPU cores available to this process."""
    if hasattr(os, "sched_getaffinity"):
        found = tuple(sorted(os.sched_getaffinity(0)))
    else:
        found = tuple(range(os.cpu_count() or 1))
    most = os.environ.get(LIMIT, "")
    return found[: max(int(most), 1)] if most.isdecimal() else found
