"""Waiting for what other threads and processes do, on a machine that may be slow."""

from collections.abc import Callable
from time import monotonic, sleep  # by name: tests may put other clocks into the module
from typing import Any

import pytest

LONG = 300.0
"""Seconds after which a test has failed. Only failures take that long, so it may be far more than is ever needed."""


def eventually(holds: Callable[[], Any], about: Callable[[], Any] | str = "", pause: float = 0.01) -> Any:
    """What `holds` gives once it is true; fail, with what is known `about` it, if that never happens."""
    end = monotonic() + LONG
    while not (found := holds()):
        if monotonic() > end:
            pytest.fail(f"it did not happen: {about() if callable(about) else about}")
        sleep(pause)
    return found
