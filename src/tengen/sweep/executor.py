"""Where trials run. The driver only uses `free`, `submit`, `collect` and `stop`.

`LocalExecutor` runs them as processes on this machine, with a thread that waits for each; `RayExecutor`
(sweep/ray_executor.py) runs them on a cluster.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from tengen.sweep.trial import Share, TrialResult, TrialSpec, run_trial

Ended = tuple[TrialSpec, TrialResult]


class Executor(Protocol):
    """Runs trials."""

    @property
    def free(self) -> int:
        """How many more trials could start now."""
        ...

    def submit(self, spec: TrialSpec) -> None:
        """Start a trial; only while `free` is positive."""
        ...

    def collect(self, timeout: float) -> list[Ended]:
        """The trials that have ended since the last call; waits up to `timeout` seconds for one."""
        ...

    def stop(self) -> None:
        """Ask all running trials to save and end; `collect` returns them as they do."""
        ...


class LocalExecutor:
    """Runs one trial for each share of this machine."""

    def __init__(self, shares: Sequence[Share], run: Callable[..., TrialResult] = run_trial) -> None:
        self._idle = list(reversed(shares))
        self._run = run
        self._ended: queue.Queue[tuple[TrialSpec, TrialResult, Share]] = queue.Queue()
        self._stopping = threading.Event()

    @property
    def free(self) -> int:
        return 0 if self._stopping.is_set() else len(self._idle)

    def submit(self, spec: TrialSpec) -> None:
        share = self._idle.pop()
        threading.Thread(target=self._work, args=(spec, share), name=f"trial {spec.trial}", daemon=True).start()

    def collect(self, timeout: float) -> list[Ended]:
        found: list[Ended] = []
        while True:
            try:
                spec, result, share = self._ended.get(timeout=0 if found else timeout)
            except queue.Empty:
                return found
            self._idle.append(share)
            found.append((spec, result))

    def stop(self) -> None:
        self._stopping.set()

    def _work(self, spec: TrialSpec, share: Share) -> None:
        try:
            result = self._run(spec, share, self._stopping.is_set)
        except Exception as error:  # a bug here must not leave the driver waiting for ever
            result = TrialResult("failed", why=f"{type(error).__name__}: {error}")
        self._ended.put((spec, result, share))
