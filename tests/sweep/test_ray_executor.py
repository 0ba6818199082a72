"""Trials on a cluster: with a stand-in for Ray that runs actors in threads, and with Ray itself."""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from tengen.cluster.connection import CheckedNodes, joined
from tengen.cluster.nodes import ClusterNode
from tengen.errors import OptionError
from tengen.sweep import ray_executor
from tengen.sweep.ray_executor import RayExecutor, TrialShare, trial_share
from tengen.sweep.trial import Ended, MachineShare, TrialResult, TrialSpec

CPU = ClusterNode("0a", "box", 4.0, 0.0)


class RayLost(Exception):
    pass


class Handle:
    """An actor: its methods run in threads, as soon as there is room."""

    def __init__(self, actor: Any) -> None:
        self.killed = False
        self.waiting: list[Future[Any]] = []
        self._actor, self._threads = actor, ThreadPoolExecutor(2)

    def __getattr__(self, name: str) -> Any:
        def remote(*arguments: Any) -> Future[Any]:
            if self._actor is None:  # there is no room for it
                self.waiting.append(Future())
                return self.waiting[-1]
            return self._threads.submit(getattr(self._actor, name), *arguments)

        return type("Method", (), {"remote": staticmethod(remote)})


class FakeRay:
    """As much of Ray, and of its checked nodes, as the executor uses."""

    exceptions = type("Exceptions", (), {"RayError": RayLost})

    def __init__(self, *nodes: Any) -> None:
        self.found, self.handles, self.options, self.full = list(nodes or (CPU,)), [], {}, False
        self.ray, self.selector = self, {}

    def remote(self, **options: Any) -> Callable[[type], Any]:
        self.options = options

        def declared(cls: type) -> Any:
            def make() -> Handle:
                self.handles.append(Handle(None if self.full else cls()))
                return self.handles[-1]

            return type("Actor", (), {"remote": staticmethod(make)})

        return declared

    def init(self, **_: Any) -> None:
        raise Exception("The node timed out.\n\nThis could happen because ...")

    def nodes(self) -> list[Any]:
        return self.found

    def where(self) -> dict[str, Any]:
        return self.selector

    def wait(self, futures: list[Any], num_returns: int = 1, timeout: float = 0) -> tuple[list[Any], list[Any]]:
        how = "FIRST_COMPLETED" if num_returns < len(futures) else "ALL_COMPLETED"
        done, rest = wait(futures, timeout, how)
        return list(done), list(rest)

    def get(self, future: Future[Any]) -> Any:
        return future.result(0)

    def kill(self, handle: Handle) -> None:
        handle.killed = True
        for future in handle.waiting:
            if not future.done():
                future.set_exception(RayLost("killed"))


def spec(base: Path, trial: str = "000") -> TrialSpec:
    config = base / "config.yaml"
    config.write_text("settings")
    return TrialSpec(trial, str(config), ("a=1",), str(base / "trials" / trial), str(base / "logs" / f"{trial}.log"))


def ended(executor: RayExecutor, count: int = 1) -> list[Ended]:
    found: list[Ended] = []
    while len(found) < count:
        found += executor.collect(0.2)
    return found


def runs(monkeypatch: pytest.MonkeyPatch, work: Callable[[TrialSpec, MachineShare, Any], TrialResult]) -> None:
    monkeypatch.setattr(ray_executor, "run_trial", work)


def test_a_trial_in_the_folder_of_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_PYTHON_CLIENT_MEM_FRACTION", raising=False)
    seen: list[Any] = []
    runs(monkeypatch, lambda spec, share, stop: (seen.append((spec, share)), TrialResult("done", {"x": 1.0}))[1])
    ray = FakeRay()
    executor = RayExecutor(ray, tmp_path, TrialShare(1.0, 0.25), most=2)
    wanted = spec(tmp_path)
    ray.selector = {"label_selector": "not on that node"}
    executor.submit(wanted)
    assert executor.free == 1
    assert ended(executor) == [(wanted, TrialResult("done", {"x": 1.0}))]
    assert seen == [
        (wanted, MachineShare(environment={"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.225", "TENGEN_CORES": "1"}))
    ]
    assert (ray.options["num_cpus"], ray.options["num_gpus"], ray.handles[0].killed) == (1.0, 0.25, True)
    assert ray.options["label_selector"] == "not on that node", "with other versions"
    assert ray.options["max_restarts"] == ray.options["max_task_retries"] == 3
    assert executor.free == 2
    assert executor.collect(0.0) == []


def test_a_node_without_the_folder_gets_the_run_and_sends_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(given: TrialSpec, share: MachineShare, stop: Any) -> TrialResult:
        assert not given.folder.startswith(str(tmp_path))
        assert Path(given.config).read_text() == "settings"
        folder = Path(given.folder)
        folder.mkdir(exist_ok=True)
        with (folder / "steps").open("a") as file, Path(given.log).open("a") as log:
            print("step", file=file)
            print("said", file=log)
        return TrialResult("done", {"lines": float(len((folder / "steps").read_text().split()))})

    runs(monkeypatch, work)
    monkeypatch.setattr(ray_executor, "_TOKEN", "elsewhere")
    executor = RayExecutor(FakeRay(), tmp_path, TrialShare(1.0, 0.0))
    wanted = spec(tmp_path)
    monkeypatch.setattr(ray_executor.files, "write_bytes", lambda *_: None)  # so that nodes do not see the token
    for times in (1, 2):
        executor.submit(wanted)
        ((_, result),) = ended(executor)
        assert result.values == {"lines": times}
        assert (tmp_path / "trials" / "000" / "steps").read_text() == "step\n" * times
        assert (tmp_path / "logs" / "000.log").read_text() == "said\n" * times
    assert [path.name for path in (tmp_path / "trials").iterdir()] == ["000"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("The actor died\nbecause its node has gone", "because its node has gone"),
        (
            "Refer to the documentation on how to address the out of memory issue: https://x. To adjust, ",
            "Ray ended it, because its machine has too little memory left",
        ),
        ("RESOURCE_EXHAUSTED: Out of memory on the device", "RESOURCE_EXHAUSTED: Out of memory on the device"),
    ],
)
def test_a_worker_that_dies_again_and_again_is_a_failure(
    said: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: Any) -> TrialResult:
        raise RayLost(said)

    runs(monkeypatch, work)
    executor = RayExecutor(FakeRay(), tmp_path, TrialShare(1.0, 0.0))
    executor.submit(spec(tmp_path))
    ((_, result),) = ended(executor)
    assert (result.status, result.why) == ("failed", f"its worker died 4 times, or cannot run it: {why}")


def test_stopping_reaches_those_that_run_and_kills_those_that_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(spec: TrialSpec, share: MachineShare, stop: Callable[[], bool]) -> TrialResult:
        while not stop():
            pass
        return TrialResult("stopped")

    runs(monkeypatch, work)
    monkeypatch.setattr(ray_executor, "_ANSWER", 0.3)
    ray = FakeRay()
    executor = RayExecutor(ray, tmp_path, TrialShare(1.0, 0.0), most=5)
    executor.submit(spec(tmp_path, "000"))
    ray.full = True
    executor.submit(spec(tmp_path, "001"))
    executor.stop()
    executor.stop()
    assert executor.free == 0
    assert {(given.trial, result.status) for given, result in ended(executor, 2)} == {
        ("000", "stopped"),
        ("001", "stopped"),
    }


def test_room_and_shares() -> None:
    gpus, head = ClusterNode("0b", "big", 8.0, 2.0), ClusterNode("0c", "head", 0.0, 0.0)
    assert TrialShare(1, 0.25).room([gpus, CPU]) == 8
    assert TrialShare(2, 0).room([gpus, CPU]) == 6
    assert trial_share([gpus], None, None) == TrialShare(1, 1)
    assert trial_share([head, CPU], None, None) == TrialShare(2, 0)
    assert trial_share([head], None, None) == TrialShare(1, 0)
    assert trial_share([gpus], None, 0.1) == TrialShare(1, 0.1)
    assert trial_share([gpus], 4, None) == TrialShare(4, 1)
    assert TrialShare(4, 0).environment({}) == {
        "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu", "TENGEN_CORES": "4"
    }  # fmt: skip
    dying = FakeRay(CPU)
    crowded = RayExecutor(dying, Path(), TrialShare(1, 0))
    crowded._running = dict.fromkeys(range(9))  # type: ignore[assignment]
    assert crowded.free == 0, "its node had more room when these began"
    for cores, share, words in ((1, 1.5, "--trial-gpus: expected a whole"), (0, 0, "--trial-cores: expected more")):
        with pytest.raises(OptionError, match=words):
            trial_share([gpus], cores, share)
    with pytest.raises(OptionError, match="no node of the cluster has 1 core and 1 GPU for a trial"):
        RayExecutor(FakeRay(CPU), Path(), TrialShare(1, 1))
    assert RayExecutor(FakeRay(CPU), Path(), TrialShare(1, 0)).free == 4


def test_nodes_that_join_are_looked_at_however_many_trials_may_run() -> None:
    ray, asked = FakeRay(CPU), []
    executor = RayExecutor(ray, Path(), TrialShare(1, 0), most=1)
    ray.nodes = lambda: asked.append(True) or [CPU]  # type: ignore[method-assign]
    assert executor.free == 1
    assert asked


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # by Ray, in a process that may have used JAX
def test_with_ray_itself_a_killed_worker_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    import signal

    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path.parent))
    with joined(None) as ray:
        executor = RayExecutor(CheckedNodes(ray), tmp_path, TrialShare(1.0, 0.0), most=1)
        bad = spec(tmp_path)  # a configuration that cannot be read: the trial fails, and says why
        executor.submit(bad)
        reference = next(iter(executor._running))
        worker = ray.get(executor._running[reference][1].__ray_call__.remote(lambda self: os.getpid()))
        os.kill(worker, signal.SIGKILL)
        ((given, result),) = ended(executor)
    assert (given, result.status) == (bad, "failed")
    assert "config.yaml" in result.why
