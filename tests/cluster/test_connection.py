"""Everything that can be wrong with a cluster is one line, before anything is started."""

import platform
import sys
from pathlib import Path

import pytest

import tengen
from tengen.cluster import connection
from tengen.commands import main
from tengen.config.settings.cluster import ClusterSettings
from tengen.errors import TengenError


def test_without_ray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    base = tmp_path / "run"
    assert main(["run", "tic_tac_toe", "--mode", "cluster", "--base", str(base)]) == 2
    assert capsys.readouterr().err == (
        "--mode cluster needs Ray, which is not installed: pip install 'tengen-zero[cluster]'\n"
    )
    assert not base.exists()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", r"--address 127.0.0.1:1: no cluster answers there \(.*\); `ray start --head` starts one"),
        ("here", "--address: expected HOST:PORT of the head node, or auto on one of its nodes, got here"),
        ("ray://here:10001", "--address: expected HOST:PORT of the head node, or auto"),
    ],
)
def test_without_a_cluster_at_the_address(address: str, message: str) -> None:
    with pytest.raises(TengenError, match=message), connection.connected(address, ClusterSettings()):
        pass


def test_an_address_belongs_to_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "tic_tac_toe", "--address", "auto", "--base", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == "--address: only --mode cluster runs on one\n"


def test_versions_that_differ() -> None:
    same = {"Python": platform.python_version(), "Tengen": tengen.__version__}
    assert connection.different("box", same) == ""
    assert connection.different("box", {**same, "Tengen": "0.0.1"}) == (
        f"box: has Tengen 0.0.1, and this node {tengen.__version__}; install the same everywhere"
    )
    assert "box: has Python 2.7.1, and this node 3." in connection.different("box", {**same, "Python": "2.7.1"})
    assert "box: has Tengen none" in connection.different("box", {"Python": same["Python"]})
