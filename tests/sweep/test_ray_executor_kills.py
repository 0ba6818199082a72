"""A sweep on a real cluster of two nodes, whose driver is killed: the same command goes on, and nothing runs twice."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.paths import IMPORTABLE
from tests.helpers.patience import eventually
from tests.helpers.ray_cluster import TestCluster
from tests.helpers.tiny_runs import settings

pytest.importorskip("ray")
# Ray forks this process, which is no matter if another test has used JAX in it.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")]
HALVING = ("halving", "--trials", "3", "--eta", "3")  # 3 trials, and one of them goes on
POPULATION = ("population", "--population", "2", "--generations", "2")  # 2 and 2 trials


@pytest.fixture
def cluster() -> Iterator[TestCluster]:
    found = TestCluster(2)
    try:
        yield found
    finally:
        found.close()


def start(base: Path, cluster: TestCluster, strategy: tuple[str, ...]) -> "subprocess.Popen[bytes]":
    words = ["sweep", "tic_tac_toe", "--random", "train.lr=1e-3..1e-2:log", "--strategy", *strategy, "--steps", "20"]
    where = ["--metric", "loss", "--base", str(base), "--on", "ray", "--address", cluster.address, "--trial-cores", "1"]
    sets = [word for text in settings() if not text.startswith("goal.") for word in ("--set", text)]
    with (base.parent / "sweep.log").open("ab") as log:
        line = [sys.executable, "-m", "tengen", *words, *where, *sets]
        return subprocess.Popen(line, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": IMPORTABLE})


@pytest.mark.parametrize(("strategy", "results"), [(HALVING, 4), (POPULATION, 4)], ids=["halving", "population"])
def test_a_sweep_survives_its_driver(
    strategy: tuple[str, ...], results: int, cluster: TestCluster, tmp_path: Path
) -> None:
    base = tmp_path / "sweep"

    def ended() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (base / "results").glob("*.json")}

    def said() -> str:
        return (tmp_path / "sweep.log").read_text()[-3000:]

    driver = start(base, cluster, strategy)
    try:
        eventually(lambda: bool(ended()) or driver.poll() is not None, said)
    finally:
        driver.kill()
        driver.wait()
    before = ended()
    assert 0 < len(before) < results, said()
    again = start(base, cluster, strategy)
    try:
        assert again.wait() == 0, said()
    finally:
        again.kill()
    found = ended()
    assert len(found) == results
    assert {name: found[name] for name in before} == before, "trials that have ended are not run again"
    assert {json.loads(text)["status"] for text in found.values()} == {"done"}
    assert all((base / name).stat().st_size for name in ("table.txt", "results.json", "plot.svg"))
