"""What is shown of the nodes."""

from tengen.cluster.actor import ActorStatus
from tengen.cluster.nodes import ClusterNode, NodeShares
from tengen.cluster.run import of_nodes
from tests.helpers.fake_ray import RESULT, FleetSetting


def test_a_line_for_each_node_and_one_for_actors_without_a_node() -> None:
    setting = FleetSetting(3)
    doing = {1: ("playing", False), 2: ("the learner", True), 3: ("playing", False)}
    setting.ray.status = lambda actor: ActorStatus(
        actor.node, 1, *doing[setting.cluster.started.index(actor) + 1], version=0, evaluations_per_second=500.0
    )
    setting.begin()
    setting.ray.deliver(setting.actors[0], RESULT)
    setting.step()
    setting.cluster.size = 4
    setting.fleet.publish([2.0])
    setting.now += 2
    setting.fleet._scale()
    first, second, to_come = of_nodes(setting.fleet, setting.now)
    assert (first.part, first.waiting) == ("node first", False)
    assert first.words == "playing (2 actors), 1,000 evaluations/s, 2 games, 10 rows, network 10s old"
    assert first.figures == {
        "actors": 2,
        "evaluations_per_second": 1000,
        "games": 2,
        "rows": 10,
        "network_age": 10.0,
        "waiting": 0,
    }
    assert second.figures["waiting"] == 1
    assert second.doing == "waiting: the learner (1 actor), 500 evaluations/s, network 10s old"
    assert (to_come.waiting, to_come.words) == (True, "1 self-play actor to be started")


def test_a_node_without_room_is_said_to_be_idle() -> None:
    setting = FleetSetting(1)
    shares = NodeShares(2, 1.0, 1.0)
    words = shares.lack(ClusterNode("n2", "second", 16.0, 0.0))
    assert words == "idle: it has 16 cores and 0 GPUs, and a self-play actor needs 2 cores and 1 GPU"
    assert shares.lack(ClusterNode("n2", "second", 16.0, 1.0)) == ""
    setting.cluster.idle = lambda: {"n2": words}
    setting.ray.status = lambda actor: ActorStatus("n1", 1, "playing")
    setting.begin()
    assert [(part.name, part.doing.partition(" ")[0]) for part in of_nodes(setting.fleet, setting.now)] == [
        ("first", "playing"),
        ("second", "idle:"),
    ]


def test_actors_that_were_lost_are_counted_where_they_were() -> None:
    setting = FleetSetting(2)
    setting.begin()
    setting.actors[0].dead = True
    setting.cluster.size = 1
    setting.step()
    restarts = {part.name: part.restarts for part in of_nodes(setting.fleet, setting.now)}
    assert restarts["first"] == 1
    assert restarts["second"] == 0


def test_nodes_that_have_left_are_one_line_however_many_there_were() -> None:
    setting = FleetSetting(1)
    setting.begin()
    names = [f"n{number}" for number in range(3, 103)]
    setting.cluster.names |= {name: f"spot/{name}" for name in names}
    setting.cluster.living = lambda: {"n1", "n2"}
    setting.fleet.received |= dict.fromkeys(names, (2, 10))
    setting.fleet.lost |= dict.fromkeys(names, 1)
    setting.step()
    parts = {part.name: part for part in of_nodes(setting.fleet, setting.now)}
    assert set(parts) == {"gone", "first"}
    assert (parts["gone"].words, parts["gone"].restarts) == ("100 nodes have left; 200 games, 1,000 rows", 100)
