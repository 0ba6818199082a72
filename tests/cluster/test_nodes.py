"""How a run is divided among nodes."""

from typing import Any

import pytest

from tengen.cluster.nodes import ClusterNode, NodeShares, read_nodes, shares
from tengen.config.settings.parts import ClusterSettings
from tengen.errors import OptionError


def node(name: str, cpus: float = 8, gpus: float = 0) -> ClusterNode:
    return ClusterNode(name, name, cpus, gpus)


def settings(**values: Any) -> ClusterSettings:
    return ClusterSettings(**values)


def test_a_laptop() -> None:
    found = shares(settings(), [node("a", 4)], "a")
    assert found == NodeShares(2, 0.0, 0.0)
    assert found.room(node("a", 4), learner=True) == 2


def test_a_node_with_fewer_cores_than_an_actor_wants() -> None:
    assert shares(settings(cores=16), [node("a", 3), node("b", 2)], "a").cores == 3


def test_one_gpu_is_shared_and_of_several_the_learner_has_one() -> None:
    assert shares(settings(), [node("a", 8, 1)], "a") == NodeShares(2, 0.5, 0.5)
    found = shares(settings(), [node("a", 16, 4), node("b", 16, 4), node("c", 16, 0)], "a")
    assert found == NodeShares(2, 1.0, 1.0)
    rooms = [found.room(each, each.id == "a") for each in (node("a", 16, 4), node("b", 16, 4), node("c", 16, 0))]
    assert rooms == [3, 4, 0]


def test_shares_of_gpus() -> None:
    found = shares(settings(gpus=0.2, learner_gpus=2.0, cores=1), [node("a", 64, 4)], "a")
    assert found.room(node("a", 64, 4), learner=True) == 10


@pytest.mark.parametrize(
    ("values", "nodes", "message"),
    [
        ({"gpus": 1.0}, [node("a")], "no node has room for a self-play actor with 2 cores and 1 GPU; there are a "),
        (
            {"learner_gpus": 2.0},
            [node("a", 8, 1)],
            "cluster.learner_gpus: the learner runs on the node .* a, and needs 2",
        ),
        (
            {},
            [node("a"), node("b", 8, 2)],
            "cluster.learner_gpus: the learner runs on the node of this command, a, and ",
        ),
        ({"actors": 9}, [node("a")], "cluster.actors: a has room for 4 of 9 actors with 2 cores and 0 GPUs each"),
        ({"gpus": 1.0, "learner_gpus": 1.0}, [node("a", 8, 1)], "no node has room .* besides the learner"),
    ],
)
def test_what_does_not_fit_is_told_in_a_line(values: dict[str, Any], nodes: list[ClusterNode], message: str) -> None:
    with pytest.raises(OptionError, match=message) as error:
        shares(settings(**values), nodes, "a")
    assert "\n" not in str(error.value)


def test_more_actors_than_fit_are_demand_where_nodes_may_join() -> None:
    assert shares(settings(actors=100), [node("a"), node("b")], "a") == NodeShares(2, 0.0, 0.0)


def test_nodes_of_one_machine_keep_their_names() -> None:
    def about(id: str, alive: bool = True) -> dict[str, Any]:
        return {"NodeID": id, "NodeManagerHostname": "box", "Alive": alive, "Resources": {"CPU": 2.0}}

    names: dict[str, str] = {}
    assert [node.name for node in read_nodes([about("x"), about("y")], names)] == ["box", "box/2"]
    found = read_nodes([about("z"), about("y"), about("x", alive=False)], names)
    assert [(node.id, node.name) for node in found] == [("z", "box/3"), ("y", "box/2")]
