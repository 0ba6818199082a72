"""Actors, nodes and the driver of a run on a real cluster are killed at random; an auditor looks at what is left."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tengen
from tengen.run import metrics, part_status
from tests.helpers.patience import LONG, eventually
from tests.helpers.ray_cluster import TestCluster
from tests.helpers.run_audit import Audit, audit_learner
from tests.helpers.tiny_runs import settings

pytest.importorskip("ray")
# Ray forks this process, which is no matter if another test has used JAX in it.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")]
SETTINGS = settings("cluster.cores=1", "cluster.stale_steps=5", "rating.minutes=1000", "train.samples_per_row=0.5")


class Driver:
    """`tengen run --mode cluster`, started and started again."""

    def __init__(self, base: Path, address: str) -> None:
        self.base, self.address, self.starts = base, address, 0
        self.log = base.parent / "driver.log"
        self.start()

    def start(self) -> None:
        self.starts += 1
        words = ["run", "tic_tac_toe", "--mode", "cluster", "--address", self.address, "--base", str(self.base)]
        line = [sys.executable, "-m", "tengen", *words, *(word for text in SETTINGS for word in ("--set", text))]
        source = {"PYTHONPATH": str(Path(tengen.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(line, stdout=log, stderr=log, env={**os.environ, **source})

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.start()

    def tail(self) -> str:
        return self.log.read_text()[-3000:]

    def wait_for(self, what: Callable[[], bool], words: str) -> None:
        eventually(lambda: what() or self.process.poll() is not None, lambda: f"{words}: {self.tail()}", pause=0.1)
        assert self.process.poll() is None, f"the driver has ended: {self.tail()}"

    def end(self) -> None:
        self.process.terminate()
        assert self.process.wait(LONG) == 128 + signal.SIGTERM, self.tail()


def progress(base: Path) -> tuple[int, int]:
    """Chunks, and steps in checkpoints."""
    chunks = sum(1 for _ in (base / "selfplay").glob("*/??????????-*.npz"))
    steps = max((int(path.name[5:]) for path in (base / "train" / "main").glob("step_?????????")), default=0)
    return chunks, steps


def goes_on(driver: Driver) -> None:
    """Rows and steps come in beyond those of now."""
    before = progress(driver.base)
    driver.wait_for(
        lambda: all(now > then for now, then in zip(progress(driver.base), before, strict=True)),
        f"rows and steps beyond {before}",
    )


def check(base: Path, seen: set[str]) -> Audit:
    found = audit_learner(base)
    assert found.problems == []
    there = {path.name for path in (base / "selfplay").glob("*/*.npz")}
    assert seen <= there, "a chunk is lost"
    assert not list(base.rglob("*.corrupt")), "something half-written was read"
    return found


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[TestCluster, Driver]]:
    cluster = TestCluster(2)
    try:
        driver = Driver(tmp_path / "run", cluster.address)
        try:
            yield cluster, driver
        finally:
            driver.process.kill()
            driver.process.wait()
    finally:
        cluster.close()


def survive(cluster: TestCluster, driver: Driver, kills: int, seed: int) -> dict[str, Any]:
    """Kill something again and again at random moments; then the run must go on, end in order, and be whole."""
    chance, killed, seen = random.Random(seed), Counter[str](), set[str]()
    driver.wait_for(lambda: progress(driver.base)[1] > 0, "the first checkpoint")
    for _ in range(kills):
        time.sleep(chance.uniform(0.05, 8.0))
        seen |= {path.name for path in (driver.base / "selfplay").glob("*/??????????-*.npz")}
        victim = chance.choice(["actor", "actor", "node", "driver"])
        if victim == "actor":
            driver.wait_for(lambda: bool(cluster.actors()), "an actor")
            with contextlib.suppress(ProcessLookupError, IndexError):
                os.kill(chance.choice(cluster.actors()), signal.SIGKILL)
        elif victim == "node":
            cluster.replace(chance.randrange(len(cluster.nodes)))
        else:
            driver.kill()
        killed[victim] += 1
        assert driver.process.poll() is None, f"the driver has ended: {driver.tail()}"
    goes_on(driver)
    driver.end()
    found = check(driver.base, seen)
    return {"killed": dict(killed), "rows": found.rows, "chunks": found.chunks, "steps": found.steps}


def test_a_run_survives_kills(started: tuple[TestCluster, Driver]) -> None:
    kills = int(os.environ.get("TENGEN_KILLS", "50"))
    print(survive(*started, kills=kills, seed=6))


@pytest.mark.parametrize("whole", [False, True], ids=["raylet", "node"])
def test_a_node_and_an_actor_that_hang_are_left_out(whole: bool, started: tuple[TestCluster, Driver]) -> None:
    cluster, driver = started
    driver.wait_for(lambda: progress(driver.base)[1] > 0, "the first checkpoint")
    stopped = [cluster.actors()[0]]
    try:
        os.kill(stopped[0], signal.SIGSTOP)
        goes_on(driver)
        driver.wait_for(lambda: "does not answer" in driver.log.read_text(), "the actor is missed")
        driver.wait_for(lambda: len(cluster.actors()) == 2 and stopped[0] not in cluster.actors(), "another actor")
        hanging = [cluster.raylet(0), *(cluster.children(0) if whole else [])]
        stopped += hanging
        for process in hanging:
            os.kill(process, signal.SIGSTOP)
        driver.wait_for(lambda: "died" in driver.log.read_text(), "the node is missed")
        goes_on(driver)
        driver.end()
    finally:
        for process in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)
    check(driver.base, set())


def test_actors_follow_a_cluster_that_grows_and_shrinks(started: tuple[TestCluster, Driver]) -> None:
    cluster, driver = started

    def seen() -> dict[str, int]:
        """Actors of each node, and nodes that have left, as the status shows them."""
        parts = [part for part in part_status.look(driver.base) if part.kind == part_status.NODE]
        return {part.name: int(part.figures.get("actors", 0)) for part in parts if not part.name.startswith("to-come")}

    def playing(nodes: int) -> bool:
        return len(cluster.actors()) == nodes == sum(seen().values())

    def measured() -> int:
        """Actors in the last line of the metrics, which is written every few seconds."""
        lines = [line["parts"] for line in metrics.read(driver.base / metrics.NAME).lines if line.get("parts")]
        return sum(int(node["figures"].get("actors", 0)) for node in lines[-1].values()) if lines else 0

    driver.wait_for(lambda: playing(2) and progress(driver.base)[1] > 0, "an actor on each of two nodes")
    cluster.grow()
    driver.wait_for(lambda: playing(3) and measured() == 3, "an actor on the node that has joined")
    goes_on(driver)
    assert "gone" not in seen()
    cluster.shrink()
    driver.wait_for(lambda: playing(2), "no more actor on the node that has left")
    goes_on(driver)
    cluster.shrink()
    driver.wait_for(lambda: playing(1) and measured() == 1, "one actor is left")
    goes_on(driver)
    driver.end()
    check(driver.base, set())
