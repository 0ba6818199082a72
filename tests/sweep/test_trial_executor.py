"""Threads and shares."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tengen import schema
from tengen.sweep.trial import Ended, LocalExecutor, MachineShare, TrialResult, TrialSpec

SHARES = (MachineShare((0,)), MachineShare((1,)))


def spec(trial: str) -> TrialSpec:
    return TrialSpec(trial, "", (), "", "")


def all_of(executor: LocalExecutor, count: int) -> list[Ended]:
    found: list[Ended] = []
    while len(found) < count:
        found += executor.collect(1.0)
    return found


def test_as_many_as_there_are_shares() -> None:
    go, used = threading.Event(), []

    def run(spec: TrialSpec, share: MachineShare, stop: Callable[[], bool]) -> TrialResult:
        used.append(share)
        go.wait()
        return TrialResult("done", {"n": float(spec.trial)})

    executor = LocalExecutor(SHARES, run)
    assert executor.free == 2
    executor.submit(spec("1"))
    executor.submit(spec("2"))
    assert executor.free == 0
    assert executor.collect(0.01) == []
    go.set()
    found = all_of(executor, 2)
    assert {s.trial: r.values["n"] for s, r in found} == {"1": 1.0, "2": 2.0}
    assert {share.cores for share in used} == {(0,), (1,)}
    assert executor.free == 2


def test_one_that_breaks_is_a_failure_and_gives_its_share_back() -> None:
    def run(spec: TrialSpec, share: MachineShare, stop: Callable[[], bool]) -> TrialResult:
        raise RuntimeError("bug")

    executor = LocalExecutor(SHARES[:1], run)
    executor.submit(spec("1"))
    ((_, result),) = all_of(executor, 1)
    assert (result.status, result.why) == ("failed", "RuntimeError: bug")
    assert executor.free == 1


def test_stopping_is_seen_by_those_that_run() -> None:
    def run(spec: TrialSpec, share: MachineShare, stop: Callable[[], bool]) -> TrialResult:
        while not stop():
            pass
        return TrialResult("stopped")

    executor = LocalExecutor(SHARES, run)
    executor.submit(spec("1"))
    executor.stop()
    assert executor.free == 0  # nothing more is begun
    ((_, result),) = all_of(executor, 1)
    assert result.status == "stopped"


def test_a_worker_elsewhere_needs_nothing_but_json(tmp_path: Path) -> None:
    """What an executor of a cluster does: a process that shares nothing with this one runs the real trial."""
    program = (
        "import json, sys; from dataclasses import asdict; from tengen.schema import from_json\n"
        "from tengen.sweep.trial import TrialSpec, run_trial; assert 'jax' not in sys.modules\n"
        "print(json.dumps(asdict(run_trial(from_json(TrialSpec, sys.stdin.read())))))"
    )
    wanted = TrialSpec(
        "007", str(tmp_path / "none.yaml"), ("goal.steps=5",), str(tmp_path / "run"), str(tmp_path / "log")
    )
    told = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(asdict(wanted)), capture_output=True, text=True, check=True
    )
    result = schema.from_json(TrialResult, told.stdout)
    assert (result.status, result.why) == ("failed", f"ended with code 2: {tmp_path}/none.yaml: there is no such file")
