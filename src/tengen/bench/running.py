"""A real `tengen run`: seconds from the command to its first move and first step, and its speed once it learns.

The run is a process of its own, in an empty folder and with an empty cache of compiled programs. Needs no JAX here.
"""

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tengen.bench.figures import Figure
from tengen.errors import TengenError
from tengen.run import metrics
from tengen.run.children import PARENT

_SETTLING = 5.0  # seconds after the first step that do not count: not all games are at the same move any more
_SPEEDS = ("evaluations", "rows", "games", "steps")
_LINES = 2  # of progress that are needed at least


@dataclass(frozen=True)
class RunProcess:
    """A run that goes on."""

    base: Path
    began: datetime
    process: "subprocess.Popen[bytes]"

    def lines(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in metrics.read(self.base / metrics.NAME).lines if line["kind"] == kind]

    def first(self, what: str) -> float:
        """Seconds from the command to the first `move` or `step`, for which this waits."""
        while True:
            for line in self.lines(metrics.FIRST):
                if line.get("what") == what and (moment := metrics.time_of(line)) is not None:
                    return (moment - self.began).total_seconds()
            self._wait()

    def progress(self, seconds: float) -> list[dict[str, Any]]:
        """Lines of progress for so long, from some time after the first step on."""
        while True:
            learning = [line for line in self.lines("progress") if line["steps"]]
            later = [line for line in learning if line["elapsed"] >= learning[0]["elapsed"] + _SETTLING]
            if len(later) >= _LINES and later[-1]["elapsed"] - later[0]["elapsed"] >= seconds:
                return later
            self._wait()

    def _wait(self) -> None:
        if self.process.poll() is not None:
            raise TengenError(f"the run ended with code {self.process.returncode} before it was measured")
        time.sleep(0.2)


@contextlib.contextmanager
def running(config: str, base: Path, cache: Path, options: Sequence[str] = ()) -> Iterator[RunProcess]:
    """`tengen run CONFIG` with its compiled programs in `cache`, stopped afterwards. Its output goes to stderr."""
    words = [sys.executable, "-m", "tengen", "run", config, "--base", str(base), *options]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "CUDA_CACHE_PATH": str(cache / "cuda")}
    environment[PARENT] = str(os.getpid())  # it ends with this process
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    began = datetime.now(UTC)
    with subprocess.Popen(words, env=environment, stdout=sys.stderr, stdin=subprocess.DEVNULL) as process:
        try:
            yield RunProcess(base, began, process)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def figures(config: str, seconds: float, options: Sequence[str] = ()) -> Iterator[Figure]:
    """The first start and the loop's speed, then the second start, whose programs are compiled."""
    with tempfile.TemporaryDirectory(prefix="tengen-bench-", ignore_cleanup_errors=True) as folder:
        cache = Path(folder, "cache")
        with running(config, Path(folder, "first"), cache, options) as run:
            for what in ("move", "step"):
                yield Figure(f"first {what} of `tengen run {config}`, empty cache", run.first(what), "s", 0.1)
            yield from speeds(config, run.progress(seconds))
        with running(config, Path(folder, "second"), cache, options) as run:
            for what in ("move", "step"):
                yield Figure(f"first {what} of `tengen run {config}`, second start", run.first(what), "s", 0.1)


def speeds(config: str, lines: Sequence[dict[str, Any]]) -> Iterator[Figure]:
    """The loop's speed from lines of progress, learning included, and the share of its time that it plays."""
    for name in _SPEEDS:
        found = [line[f"{name}_per_second"] for line in lines if line.get(f"{name}_per_second")]
        if found:
            noise = statistics.stdev(found) / statistics.mean(found) / len(found) ** 0.5 if len(found) > 1 else 0.0
            yield Figure(f"{name} of `tengen run {config}`", statistics.mean(found), f"{name}/s", noise)
    playing, learning = (lines[-1][name] - lines[0][name] for name in ("playing", "learning"))
    if playing > 0:
        yield Figure(f"share of playing in `tengen run {config}`", playing / (playing + learning), "x", 0.02)
