"""Runs a configuration on a cluster from start to summary."""

from typing import Any

from tengen.cluster.connection import connected, described
from tengen.config.sections import Config
from tengen.jax_setup import check_device_elsewhere
from tengen.loop.launching import Advise, RunRequest, launch
from tengen.monitor.display import Display
from tengen.run import directory


def launch_cluster(request: RunRequest, advise: Advise) -> int:
    """Run until the goal is reached or the user stops it; the exit code.

    Everything that could be wrong with the cluster is an error before there is a run directory.
    """
    check_device_elsewhere()
    config, _ = directory.settled(request.config, request.base, request.overrides)
    assert isinstance(config, Config)
    with connected(request.address, config.cluster) as cluster:

        def make(request: RunRequest, shown: Display) -> Any:
            from tengen.cluster.run import ClusterRun

            shown.say(described(cluster))
            return ClusterRun(request.config, request.base, shown, cluster=cluster, **request.options)

        return launch(request, advise, make)
