"""Ray's own cluster of several nodes on one machine."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from tests.helpers.compilations import QUICKLY

QUICK = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0", "XLA_FLAGS": QUICKLY}
"""Variables for Ray in tests. By default its workers yield to all other processes, and a busy machine has many."""


def in_time(start: Callable[[], Any]) -> Any:
    """What starts a node of Ray, which gives it half a minute: on a busy machine, that may need several attempts."""
    for _ in range(20):
        with contextlib.suppress(Exception):
            return start()
    return start()


class TestCluster:
    """Ray's own cluster of several nodes on one machine: a head without cores, and nodes with one core each.

    Until it is closed, new processes on it and of this one compile quickly.
    """

    __test__ = False

    def __init__(self, nodes: int) -> None:
        self._quick = mock.patch.dict(os.environ, QUICK)
        self._quick.start()
        from ray.cluster_utils import Cluster

        # A node that hangs is declared dead by Ray after a few seconds instead of half a minute.
        checks = {"health_check_period_ms": 1000, "health_check_timeout_ms": 5000, "health_check_failure_threshold": 4}
        head = {"num_cpus": 0, "num_gpus": 0, "include_dashboard": False, "_system_config": checks}
        self.cluster = in_time(lambda: Cluster(initialize_head=True, head_node_args=head))
        self.nodes = [self._add() for _ in range(nodes)]

    def _add(self) -> Any:
        return in_time(lambda: self.cluster.add_node(num_cpus=1, num_gpus=0))

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def raylet(self, number: int) -> int:
        """The process of a node."""
        processes = self.nodes[number].all_processes["raylet"]
        return processes[0].process.pid

    def children(self, number: int) -> list[int]:
        """The other processes of a node: its workers and Ray's agents."""
        parent = self.raylet(number)
        with contextlib.suppress(OSError):
            return [int(child) for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
        return []

    def actors(self) -> list[int]:
        """The processes of all self-play actors."""
        found = []
        for child in (child for node in range(len(self.nodes)) for child in self.children(node)):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{child}/cmdline").read_text().startswith("ray::SelfplayActor"):
                    found.append(child)
        return sorted(found)

    def grow(self) -> None:
        """Let another node join."""
        self.nodes.append(self._add())

    def shrink(self) -> None:
        """Let the node that joined last leave."""
        self.cluster.remove_node(self.nodes.pop(), allow_graceful=True)

    def replace(self, number: int) -> None:
        """Kill a node with everything on it, and let another one join."""
        self.cluster.remove_node(self.nodes[number], allow_graceful=False)
        self.nodes[number] = self._add()

    def close(self) -> None:
        self.cluster.shutdown()
        self._quick.stop()
