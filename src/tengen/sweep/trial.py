"""One trial: an ordinary `tengen run` in its own folder, its measurements, and the executor that runs it.

Input and output are plain data, and nothing else is shared with the caller, so any executor on any machine that sees
the folder can run a trial. An interrupted trial continues when it is run again, and one that has used up its budget
ends at once.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from tengen import schema
from tengen.errors import TengenError
from tengen.files import lock
from tengen.jax_setup import gpu_share, nvidia_smi
from tengen.match import results
from tengen.run import children, metrics
from tengen.run.children import GRACE, PATIENCE

Stop = Callable[[], bool]
_BEAT = 0.1  # seconds between two checks of a process
_LINES = 12  # of the log that a failure keeps


@dataclass(frozen=True)
class MachineShare:
    """The part of the machine that a trial may use."""

    cores: tuple[int, ...] = ()  # none: all
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialSpec:
    """What to run. Paths are texts; a relative one is relative to the folder in which the sweep was started."""

    trial: str
    config: str  # the file
    overrides: tuple[str, ...]  # `section.key=value`, the budget among them
    folder: str  # the run directory
    log: str  # the file to which the output of the run is appended


@dataclass(frozen=True)
class TrialResult:
    """The result of a trial.

    `values` are the last figures of its metrics.jsonl by their full names, as `progress.figures.value_loss`; None
    stands for null. `matches` are those of its rating.
    """

    status: Literal["done", "failed", "stopped"]
    values: Mapping[str, int | float | None] = field(default_factory=dict)
    matches: tuple[tuple[str, str, int, int, int], ...] = ()  # a, b, wins of a, draws, losses
    why: str = ""  # it failed
    lines: tuple[str, ...] = ()  # the last that it said, if it failed


def run_trial(spec: TrialSpec, share: MachineShare | None = None, stop: Stop = lambda: False) -> TrialResult:
    """Run it until its budget is used, or until `stop` asks it to save and end. Errors become a failed result."""
    try:
        if not _wait_for_folder(Path(spec.folder), stop):
            return TrialResult("stopped")
        code, killed, offset = _run(spec, share or MachineShare(), stop)
        found = measured(Path(spec.folder))
    except TengenError as error:
        return TrialResult("failed", why=str(error).splitlines()[0], lines=tuple(str(error).splitlines()[:_LINES]))
    except OSError as error:
        return TrialResult("failed", why=f"{error.filename or spec.folder}: {error.strerror or error}")
    if code == 0:
        return found
    if stop() and (killed or code in (-signal.SIGTERM, 128 + signal.SIGTERM)):
        return TrialResult("stopped", found.values, found.matches)
    lines = tuple(children.last_lines(Path(spec.log), offset)[-_LINES:])
    how = f"ended with code {code}" if code > 0 else f"was ended by {children.signal_name(-code)}"
    why = f"{how}: {lines[-1]}" if lines else how
    return TrialResult("failed", found.values, found.matches, why, lines)


def measured(folder: Path) -> TrialResult:
    """The metrics and matches of a run directory, as the result of a finished trial."""
    values: dict[str, float | None] = {}
    for line in metrics.read(folder / metrics.NAME).lines:
        unlearned = line.get("figures") == {}  # nothing since the run was started again: what is null is as it was
        for full, value in schema.leaves(line, f"{line['kind']}."):
            if value is None or (metrics.finite(value) is not None):
                values[full] = values.get(full) if value is None and unlearned else value
    played = results.read(folder / results.OF_RUN)
    return TrialResult("done", values, tuple((m.a, m.b, m.wins, m.draws, m.losses) for m in played))


def command(spec: TrialSpec) -> list[str]:
    sets = [f"--set={text}" for text in spec.overrides]
    return [sys.executable, "-m", "tengen", "run", spec.config, "--base", spec.folder, *sets]


def _run(spec: TrialSpec, share: MachineShare, stop: Stop) -> tuple[int, bool, int]:
    """The exit code, whether it had to be killed, and where its output begins in the log."""
    title = json.dumps(spec.overrides, ensure_ascii=False)
    process, offset = children.launch(command(spec), Path(spec.log), title, {**os.environ, **share.environment})
    if share.cores and hasattr(os, "sched_setaffinity"):
        # Libraries count the available cores when they are imported, which happens later than this.
        with contextlib.suppress(OSError):
            os.sched_setaffinity(process.pid, share.cores)
    terminated: float | None = None
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(_BEAT), False, offset
        if terminated is None and stop():
            terminated = time.monotonic()
            process.terminate()
        elif terminated is not None and time.monotonic() - terminated > GRACE:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            return process.wait(), True, offset


def _wait_for_folder(folder: Path, stop: Stop) -> bool:
    """Wait until no other process runs there: a trial of a killed driver needs a moment to end. False if stopped."""
    try:
        with lock.waiting(lambda: lock.locked(folder), PATIENCE, lambda error: stop()):
            return True
    except lock.InUse:
        if not stop():
            raise
        return False


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

    def __init__(self, shares: Sequence[MachineShare], run: Callable[..., TrialResult] = run_trial) -> None:
        self._idle = list(reversed(shares))
        self._run = run
        self._ended: queue.Queue[tuple[TrialSpec, TrialResult, MachineShare]] = queue.Queue()
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

    def _work(self, spec: TrialSpec, share: MachineShare) -> None:
        try:
            result = self._run(spec, share, self._stopping.is_set)
        except Exception as error:  # a bug here must not leave the driver waiting for ever
            result = TrialResult("failed", why=f"{type(error).__name__}: {error}")
        self._ended.put((spec, result, share))


_VISIBLE = "CUDA_VISIBLE_DEVICES"
_THREADS = "OMP_NUM_THREADS"


def gpus(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The NVIDIA GPUs that JAX would use, by their names in CUDA_VISIBLE_DEVICES."""
    if environment.get("JAX_PLATFORMS", "").lower() == "cpu":
        return ()
    if _VISIBLE in environment:
        return tuple(name for text in environment[_VISIBLE].split(",") if (name := text.strip()))
    lines = [line for line in nvidia_smi("-L") if line.startswith("GPU ")]
    return tuple(str(number) for number in range(len(lines)))


def usual(devices: tuple[str, ...], there: tuple[int, ...]) -> int:
    """The default number of trials at once: one per GPU or, without GPUs, one per two cores."""
    return len(devices) or max(1, len(there) // 2)


def shares(
    count: int, devices: tuple[str, ...], there: tuple[int, ...], environment: Mapping[str, str] = os.environ
) -> tuple[MachineShare, ...]:
    """The shares of `count` trials at once: GPUs in turn, a part of the memory of each, and separate cores."""
    found = []
    on_one = -(-count // len(devices)) if devices else 0  # trials on the fullest GPU
    for number in range(count):
        given: dict[str, str] = {}
        mine = there[len(there) * number // count : len(there) * (number + 1) // count] if count > 1 else ()
        if count >= len(there) and count > 1:  # some share a core
            mine = (there[number % len(there)],)
        if mine and _THREADS not in environment:
            given[_THREADS] = str(len(mine))
        if devices:
            given |= {_VISIBLE: devices[number % len(devices)], **gpu_share(1 / on_one, environment)}
        found.append(MachineShare(mine, given))
    return tuple(found)
