"""Waiting for what other threads and processes do, on a machine that may be slow."""

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
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


class CommandProcess:
    """`tengen` with these arguments as another process, which prints to the file `log`."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen([sys.executable, "-m", "tengen", *arguments], stdout=file, stderr=file)

    def wait_until(self, done: Callable[[], bool]) -> None:
        """Wait; fail if the process ends before that."""
        eventually(lambda: done() or self.process.poll() is not None, self.log.read_text)
        assert self.process.poll() is None, self.log.read_text()

    def end(self, number: signal.Signals) -> tuple[int, str]:
        """Send the signal: the exit code, and all that was printed."""
        self.process.send_signal(number)
        return self.process.wait(timeout=LONG), self.log.read_text()
