"""Everything that can be wrong with a cluster is one line, before anything is started."""

import os
import platform
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tengen
from tengen.cluster import connection
from tengen.commands import main
from tengen.config.settings.parts import ClusterSettings
from tengen.errors import OptionError, TengenError
from tests.helpers.fake_ray import RayError, RayTaskError


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")


def test_without_ray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    base = tmp_path / "run"
    assert main(["run", "tic_tac_toe", "--mode", "cluster", "--base", str(base)]) == 2
    assert capsys.readouterr().err == (
        "--mode cluster needs Ray, which is not installed: pip install 'tengen-zero[cluster]'\n"
    )
    assert not base.exists()


def test_sweeps_need_ray_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(OptionError, match=r"^--on ray needs Ray, which is not installed: pip install"),
        connection.joined(None, "--on ray"),
    ):
        pass


@pytest.mark.parametrize(
    ("version", "good"), [("2.9.3", False), ("2.59.1", False), ("2.60.0", True), ("3.0.0.dev0", True)]
)
def test_a_ray_that_is_too_old(version: str, good: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(__version__=version))  # type: ignore[arg-type]
    if good:
        connection.library()
        return
    message = f"--mode cluster needs Ray 2.60 or newer, got {version}: pip install 'tengen-zero[cluster]'"
    with pytest.raises(OptionError, match=f"^{re.escape(message)}$"):
        connection.library()


def test_ray_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**options: object) -> None:
        raise Exception("The node timed out. And more.")  # just that, on a busy machine

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"^Ray could not be started on this machine: The node timed out$"):
        connection.joined(None).__enter__()


def test_a_cluster_with_another_ray() -> None:
    error = RuntimeError(
        "Version mismatch: The cluster was started with:\n    Ray: 2.50.0\n    Python: 3.11.7\nThis one 2.60"
    )
    assert connection.one_line(error) == (
        "Version mismatch: The cluster was started with: Ray: 2.50.0 Python: 3.11.7 This one 2.60; "
        "install the same everywhere"
    )


def test_an_address_belongs_to_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "tic_tac_toe", "--address", "auto", "--base", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == "--address: only --mode cluster needs one\n"


@pytest.mark.parametrize(("address", "late", "tries"), [(None, 1, 2), (None, 9, 3), ("auto", 9, 1)])
def test_ray_that_is_late_on_a_busy_machine_is_started_again(
    address: str | None, late: int, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def init(address: str, **options: Any) -> None:
        asked.append(address)
        if len(asked) <= late:
            raise RuntimeError("The current node timed out during startup. This could happen because of many things.")

    fake = SimpleNamespace(init=init, shutdown=lambda: None)
    monkeypatch.setattr(connection, "library", lambda option: fake)
    if late < tries:
        with connection.joined(address) as found:
            assert found is fake
    else:
        with pytest.raises(OptionError, match="The current node timed out during startup$"), connection.joined(address):
            pass
    assert len(asked) == tries


@pytest.mark.parametrize(("address", "chosen", "used"), [(None, "", "0"), (None, "7", "7"), ("auto", "", "")])
def test_self_play_on_this_machine_does_not_yield_to_all_other_processes(
    address: str | None, chosen: str, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "RAY_worker_niceness"
    monkeypatch.setenv(name, chosen)
    if not chosen:
        monkeypatch.delenv(name)
    fake = SimpleNamespace(init=lambda address, **options: None, shutdown=lambda: None)
    monkeypatch.setattr(connection, "library", lambda option: fake)
    with connection.joined(address):
        assert os.environ.get(name, "") == used


def test_versions_that_differ() -> None:
    same = {"Python": platform.python_version(), "Tengen": tengen.__version__}
    assert connection.different("box", same) == ""
    assert connection.different("box", {**same, "Tengen": "0.0.1"}) == (
        f"box: has Tengen 0.0.1, and this node {tengen.__version__}; install the same everywhere"
    )
    assert "box: has Python 2.7.1, and this node 3." in connection.different("box", {**same, "Python": "2.7.1"})
    assert "box: has Tengen none" in connection.different("box", {"Python": same["Python"]})


class FakeNodes:
    """A cluster whose second node gives `answer`, and is gone after a few looks."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, answer: Any, looks: int) -> None:
        self._answer, self._looks = answer, looks

    def nodes(self) -> list[dict[str, Any]]:
        self._looks -= 1
        about = {"NodeManagerHostname": "box", "Resources": {"CPU": 2.0}}
        return [{"NodeID": id, "Alive": id == "0a" or self._looks > 0, **about} for id in ("0a", "0b")]

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "0a")

    def remote(self, **options: Any) -> Any:
        return lambda function: SimpleNamespace(remote=lambda: "asked")

    def wait(self, refs: list[Any], timeout: float) -> Any:
        return refs, []

    def get(self, ref: Any) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.fixture
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray checks the names of nodes, and these have none of Ray's."""
    monkeypatch.setattr(connection.CheckedNodes, "_on", lambda cluster, node: node)
    monkeypatch.setattr(connection, "_LOOK", 0.0)


@pytest.mark.usefixtures("anywhere")
def test_a_node_that_dies_while_it_is_asked_does_not_matter() -> None:
    cluster = connection.RayCluster(FakeNodes(RayError("the node does not exist any more"), 3), ClusterSettings())
    assert [node.id for node in cluster.nodes()] == ["0a"]
    assert connection.described(cluster) == "1 node, 1 self-play actor of 2 cores"


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            RayTaskError("Traceback\nModuleNotFoundError: No module named 'tengen'"),
            "box/2: Tengen cannot be used there: Mod",
        ),
        ({"Python": platform.python_version(), "Tengen": "0.0.1"}, "box/2: has Tengen 0.0.1"),
    ],
)
def test_a_node_that_cannot_take_part(answer: Any, message: str) -> None:
    with pytest.raises(TengenError, match=message) as error:
        connection.CheckedNodes(FakeNodes(answer, 100))
    assert str(error.value).endswith("; repair that node, or take it out of the cluster")
