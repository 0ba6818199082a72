"""What the nodes of a cluster have, and how a run is divided among them. Needs no Ray."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tengen.config.settings.parts import ClusterSettings
from tengen.errors import OptionError
from tengen.words import counted

_ONE_GPU = 0.5  # of it for the learner, if there is but one; the rest for self-play
_ROUNDING = 1e-6


@dataclass(frozen=True)
class ClusterNode:
    id: str
    name: str  # for people
    cpus: float
    gpus: float


@dataclass(frozen=True)
class NodeShares:
    """What each process of a run takes of a node."""

    cores: int  # of an actor
    gpus: float  # of an actor
    learner_gpus: float

    def room(self, node: ClusterNode, learner: bool) -> int:
        """How many actors fit on a node, with or without the learner."""
        found = [node.cpus / self.cores]
        if self.gpus:
            found.append((node.gpus - (self.learner_gpus if learner else 0.0)) / self.gpus)
        return max(int(min(found) + _ROUNDING), 0)

    def lack(self, node: ClusterNode) -> str:
        """Why no actor fits on a node, in words; empty if one does."""
        if self.room(node, learner=False):
            return ""
        needed = counted(self.cores, "core") + (f" and {self.gpus:g} GPU" if self.gpus else "")
        return f"idle: it has {_resources(node)}, and a self-play actor needs {needed}"


def read_nodes(found: Iterable[Mapping[str, Any]], names: dict[str, str]) -> list[ClusterNode]:
    """The living nodes among those of `ray.nodes()`.

    `names` maps Ray's names of nodes to those of their machines, with a number if a machine had other nodes before.
    """
    nodes: list[ClusterNode] = []
    for node in found:
        if not node["Alive"]:
            continue
        id, machine, resources = str(node["NodeID"]), str(node["NodeManagerHostname"]), node["Resources"]
        if id not in names:
            before = sum(name.rpartition("/")[0] == machine or name == machine for name in names.values())
            names[id] = f"{machine}/{before + 1}" if before else machine
        nodes.append(ClusterNode(id, names[id], resources.get("CPU", 0.0), resources.get("GPU", 0.0)))
    return nodes


def shares(settings: ClusterSettings, nodes: Iterable[ClusterNode], own: str) -> NodeShares:
    """What the processes take, `own` being the learner's node. OptionError if there are too few GPUs or cores."""
    nodes = list(nodes)
    total, largest = sum(node.gpus for node in nodes), max(node.cpus for node in nodes)
    here = next((node for node in nodes if node.id == own), nodes[0])
    single = total == 1
    gpus = settings.gpus if settings.gpus != "auto" else min(total, 1.0 - _ONE_GPU if single else 1.0)
    learner = settings.learner_gpus if settings.learner_gpus != "auto" else min(total, _ONE_GPU if single else 1.0)
    if learner > here.gpus:
        raise OptionError(
            f"cluster.learner_gpus: the learner runs on the node of this command, {here.name}, and needs "
            f"{counted(learner, 'GPU')}, of which it has {here.gpus:g}; start it on a node with GPUs, or set fewer"
        )
    found = NodeShares(max(min(settings.cores, int(largest)), 1), gpus, learner)
    room = sum(found.room(node, node.id == own) for node in nodes)
    wanted = 1 if settings.actors == "auto" else settings.actors
    if not room:
        there = ", ".join(f"{node.name} with {_resources(node)}" for node in nodes)
        raise OptionError(
            f"no node has room for a self-play actor with {counted(found.cores, 'core')} and {counted(gpus, 'GPU')}"
            f"{' besides the learner' if learner else ''}; there are {there}; "
            "lower cluster.cores, cluster.gpus or cluster.learner_gpus, or add nodes"
        )
    if wanted > room and len(nodes) == 1:
        raise OptionError(
            f"cluster.actors: {here.name} has room for {room} of {wanted} actors with {counted(found.cores, 'core')} "
            f"and {counted(gpus, 'GPU')} each; lower it, cluster.cores or cluster.gpus"
        )
    return found


def _resources(node: ClusterNode) -> str:
    return f"{counted(node.cpus, 'core')} and {counted(node.gpus, 'GPU')}"
