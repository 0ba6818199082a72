"""The fleet of self-play actors, with a stand-in for Ray: what dies or hangs is replaced, and memory is bounded."""

import threading

import numpy as np
import pytest

from tengen.cluster import fleet
from tengen.cluster.actor import ActorStatus, PlayedChunks, PublishedNetwork, SentNetwork, pack
from tengen.cluster.connection import why_it_died
from tengen.cluster.fleet import SESSIONS, Delivery
from tengen.errors import TengenError
from tengen.selfplay.driver import NoFiniteNumbers
from tests.helpers.fake_ray import RESULT, FleetSetting, RayError, RayTaskError, finished
from tests.helpers.patience import LONG
from tests.helpers.tiny_runs import tiny


def test_as_many_actors_as_fit_and_none_has_the_games_of_another() -> None:
    setting = FleetSetting(3)
    setting.begin()
    assert len(setting.actors) == 3
    sessions = [actor.place.session for actor in setting.cluster.started]
    assert sessions == [3 * SESSIONS + number for number in (1, 2, 3)]
    setting.cluster.size = 5
    setting.step()
    assert len(setting.actors) == 5


def test_a_fixed_number_of_actors() -> None:
    setting = FleetSetting(3, "cluster.actors=2")
    setting.begin()
    assert len(setting.actors) == 2
    setting.fleet.change(tiny("cluster.actors=1"))
    setting.step()
    assert len(setting.actors) == 1
    assert sum(actor.dead for actor in setting.cluster.started) == 1


def test_a_new_network_goes_to_everybody_once_and_again_only_after_it_was_taken() -> None:
    setting = FleetSetting(2)
    setting.begin()
    first, second = setting.actors
    second.hangs = True
    for _ in range(3):
        setting.fleet.publish([2.0])
        setting.step()
        setting.step()
    assert first.versions == [0, 1, 2, 3]
    assert len([ref for ref in second.calls if ref.method == "take"]) == 2, "one that does not take any gets one more"


def test_an_actor_that_dies_is_replaced_and_its_games_are_not_taken() -> None:
    setting = FleetSetting(2)
    setting.begin()
    dying, other = setting.actors
    setting.ray.deliver(other, RESULT)
    dying.dead = True
    setting.step()
    setting.step()
    assert dying not in setting.actors
    assert len(setting.actors) == 2
    assert "self-play actor 1 on first died" in setting.said[0]
    assert setting.fleet.lost == {"n1": 1}
    assert setting.fleet.take() == [Delivery("n2", RESULT)]
    assert setting.fleet.take() == []


def test_actors_that_start_are_left_alone_when_the_cluster_grows() -> None:
    setting = FleetSetting(4)
    setting.fleet.publish([1.0])
    setting.step()
    before = setting.actors
    assert [member.status for member in setting.fleet.members] == [None] * 4
    setting.cluster.size = 5
    setting.step()
    assert setting.actors[:4] == before
    assert len(setting.actors) == 5
    assert not any(actor.dead for actor in setting.actors)


def test_results_that_were_there_when_their_actor_died_are_taken() -> None:
    setting = FleetSetting(2)
    setting.begin()
    dying = setting.actors[0]
    setting.ray.deliver(dying, RESULT)
    dying.dead = True
    for _ in range(3):
        setting.step()
    assert dying not in setting.actors
    assert setting.fleet.take() == [Delivery("n1", RESULT)]


def test_nobody_waits_for_ever_while_the_learner_is_busy() -> None:
    setting = FleetSetting(3, "cluster.waiting_chunks=1")
    setting.begin()
    for _ in range(30):
        for actor in setting.actors:
            if any(ref.method == "play" and not ref.done for ref in actor.calls):
                setting.ray.deliver(actor, RESULT)
        setting.step()
        setting.fleet.take()
    delivered = [member.delivered for member in setting.fleet.members]
    assert min(delivered) > 5
    assert max(delivered) - min(delivered) <= 1


def test_an_actor_that_hangs_is_noticed_and_replaced() -> None:
    setting = FleetSetting(2)
    setting.begin()
    hanging = setting.actors[0]
    hanging.hangs = True
    for _ in range(14):
        setting.step()
    assert hanging in setting.actors
    for _ in range(4):
        setting.step()
    assert hanging not in setting.actors
    assert hanging.dead
    assert setting.said == ["self-play actor 1 on first does not answer for 30 s; another takes its place"]
    assert len(setting.actors) == 2


def test_an_actor_that_hangs_before_its_first_answer_is_replaced_unless_it_may_have_no_place() -> None:
    setting = FleetSetting(2)
    setting.fleet.publish([1.0])
    setting.step()
    hanging, other = setting.actors
    hanging.hangs = True
    for _ in range(74):
        setting.step()
    assert setting.actors == [hanging, other]
    setting.cluster.size = 1  # a node is gone, and with it perhaps the place of an actor that has not started yet
    for _ in range(10):
        setting.step()
    assert hanging.dead, "for this one there is no room any more"
    setting.cluster.size = 2
    setting.step()
    hanging = setting.actors[1]
    hanging.hangs = True
    for _ in range(80):
        setting.step()
    assert hanging not in setting.actors
    assert hanging.dead
    assert setting.said == ["self-play actor 3 on an unknown node does not answer for 150 s; another takes its place"]


def test_more_actors_than_there_is_room_for_wait_for_a_place() -> None:
    setting = FleetSetting(1, "cluster.actors=2")
    setting.fleet.publish([1.0])
    setting.step()
    waiting = setting.actors[1]
    waiting.hangs = True
    for _ in range(200):
        setting.step()
    assert waiting in setting.actors
    assert setting.said == []


def test_an_actor_whose_place_the_gate_may_have_waits_for_it() -> None:
    setting = FleetSetting(1, reserved=1)
    setting.fleet.publish([1.0])
    setting.step()
    (waiting,) = setting.actors
    waiting.hangs = True
    for _ in range(200):
        setting.step()
    assert setting.actors == [waiting]
    assert setting.said == []


def test_places_of_the_gate_and_ratings_are_left_free_when_the_cluster_shrinks() -> None:
    setting = FleetSetting(8, reserved=2)
    setting.begin()
    dying, living = setting.actors[:2], setting.actors[2:]
    setting.cluster.size = 4
    for _ in range(5):
        setting.step()
    assert setting.actors == dying + living, "those on the node that is gone may be noticed a little later"
    for actor in dying:
        actor.dead = True
    for _ in range(20):
        setting.step()
    assert setting.actors == living[:2]
    assert all(actor.dead for actor in living[2:])
    assert len(setting.cluster.started) == 6


def test_results_wait_where_they_are_while_the_learner_is_busy() -> None:
    setting = FleetSetting(4, "cluster.waiting_chunks=3")
    setting.begin()
    for actor in setting.actors:
        for _ in range(2):
            setting.ray.deliver(actor, RESULT)
    for _ in range(5):
        setting.step()
    assert setting.fleet.waiting == setting.ray.fetched == 3
    for actor in setting.actors:
        calls = [ref for ref in actor.calls if ref.method == "play"]
        assert sum(not (ref.done and ref not in setting.fleet._fetching) for ref in calls) <= 2
    taken = 0
    while found := setting.fleet.take():
        taken += len(found)
        setting.step()
    assert taken == 8


def test_at_the_end_no_more_results_wait_at_the_learner_than_before() -> None:
    setting = FleetSetting(4, "cluster.waiting_chunks=3")
    setting.begin()
    for actor in setting.actors:
        for _ in range(2):
            setting.ray.deliver(actor, RESULT)
    taken: list[int] = []
    setting.fleet.finish(lambda deliveries: taken.append(len(deliveries)))
    assert sum(taken) == 8
    assert max(taken) <= 3
    assert all(actor.dead for actor in setting.cluster.started)


def test_actors_with_files_can_remove_them_at_the_end() -> None:
    for opponents, closed in ((None, 0), ({"x=a:1": SentNetwork("a", b"")}, 2)):
        setting = FleetSetting(2, opponents=opponents)
        setting.begin()
        setting.fleet.finish()
        calls = [ref for actor in setting.cluster.started for ref in actor.calls if ref.method == "close"]
        assert len(calls) == closed
        assert all(ref.done for ref in calls), "that was waited for"


def test_if_ray_has_died_the_end_keeps_what_has_arrived_and_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "_GONE", 0.05)
    setting, asked, answers = FleetSetting(2), threading.Event(), threading.Event()
    setting.begin()
    setting.ray.deliver(setting.actors[0], RESULT)
    setting.step()
    before = [len(actor.calls) for actor in setting.cluster.started]

    def room() -> int:
        asked.set()
        answers.wait(LONG)
        return 2

    monkeypatch.setattr(setting.cluster, "room", room)
    setting.now += 100.0
    setting.fleet._over.clear()
    setting.fleet.start()
    try:
        assert asked.wait(LONG)
        taken: list[Delivery] = []
        setting.fleet.finish(taken.extend)
        assert taken == [Delivery("n1", RESULT)]
        assert [len(actor.calls) for actor in setting.cluster.started] == before
        assert setting.said == ["Ray does not answer any more: games that are still there are lost"]
    finally:
        answers.set()
        setting.fleet._thread.join(LONG)


def test_without_a_taker_the_end_fetches_nothing() -> None:
    setting = FleetSetting(1)
    setting.begin()
    setting.ray.deliver(setting.actors[0], RESULT)
    setting.fleet.finish()
    assert setting.ray.fetched == 0
    assert setting.cluster.started[0].dead


def test_results_are_unpacked_in_another_thread() -> None:
    setting = FleetSetting(1)
    setting.begin()
    chunk = pack(0, [finished(1, games=2, rows=5)])
    setting.ray.deliver(setting.actors[0], PlayedChunks((chunk,), 50.0))
    setting.step()
    (delivery,) = setting.fleet.take()
    (unpacked,) = delivery.unpacked
    np.testing.assert_array_equal(unpacked.result().rows["ply"], np.arange(5))


def test_why_an_actor_died_is_said_in_a_few_words() -> None:
    memory = "The task was killed.\nRefer to the documentation on how to address the out of memory issue: https://x"
    assert why_it_died(RayError(memory)) == "Ray ended it, because its machine has too little memory left"
    assert why_it_died(RayError("The actor died.\nIts worker process exited with code 1.\nid: 7")) == (
        "Its worker process exited with code 1."
    )


def test_an_error_of_self_play_ends_the_run() -> None:
    setting = FleetSetting(1)
    setting.begin()
    error = RayTaskError("Traceback\nValueError: too many games")
    setting.ray.deliver(setting.actors[0], error)
    setting.step()
    with pytest.raises(TengenError, match="self-play on first failed: ValueError: too many games"):
        setting.fleet.take()
    error.cause = TengenError("the device has too little memory")
    other = FleetSetting(1)
    other.begin()
    other.ray.deliver(other.actors[0], error)
    other.step()
    with pytest.raises(TengenError, match="^self-play on first failed: the device has too little memory"):
        other.fleet.take()


def test_games_that_have_arrived_come_before_the_error_that_ends_the_run() -> None:
    setting = FleetSetting(2)
    setting.begin()
    first, second = setting.actors
    setting.ray.deliver(first, RESULT)
    error = RayTaskError("Traceback")
    error.cause = NoFiniteNumbers("no finite numbers")
    setting.ray.deliver(second, error)
    setting.step()
    assert setting.fleet.take() == [Delivery("n1", RESULT)]
    with pytest.raises(NoFiniteNumbers):
        setting.fleet.take()


def test_an_error_on_one_node_does_not_end_the_run_if_others_have_games() -> None:
    setting = FleetSetting(2)
    setting.begin()
    good, bad = setting.actors
    node = bad.node
    setting.ray.deliver(good, RESULT)
    setting.step()
    for times in range(1, 4):
        setting.ray.status = lambda actor: ActorStatus("n1" if actor is good else node, 1, "playing", version=0)
        setting.ray.deliver(setting.actors[1], RayTaskError("Traceback\nJaxRuntimeError: uncorrectable ECC error"))
        setting.step()
        assert setting.actors == [good], "the next one is not started at once"
        assert setting.fleet.lost == {node: times}
        assert bool(setting.cluster.excluded) == (times == 3)
        for _ in range(18):
            setting.step()
        assert len(setting.actors) == 2
    assert setting.fleet.take() == [Delivery("n1", RESULT)]
    assert setting.said[0] == (
        "self-play actor 2 on second failed: JaxRuntimeError: uncorrectable ECC error; another takes its place"
    )
    assert setting.said[-1] == (
        "left out: second: self-play fails there again and again: JaxRuntimeError: uncorrectable ECC error"
    )
    assert setting.fleet.error is None


def test_a_node_that_sends_slowly_slows_nobody_else() -> None:
    setting = FleetSetting(8, "cluster.waiting_chunks=4")
    setting.begin()
    for actor in setting.actors:
        actor.slow = actor.node == "n1"
    taken = []
    for _ in range(20):
        for actor in setting.actors:
            if any(ref.method == "play" and not ref.done for ref in actor.calls):
                setting.ray.deliver(actor, RESULT)
        setting.step()
        taken += setting.fleet.take()
    assert {delivery.node for delivery in taken} == {"n2"}
    assert len(taken) >= 20 * 2 - 4, "half of the places are for the other node"
    assert len(setting.fleet._fetching) <= 4


def test_actors_that_could_not_answer_because_this_process_was_stopped_are_kept() -> None:
    setting = FleetSetting(2)
    setting.begin()
    before = setting.actors
    for actor in before:
        actor.hangs = True  # its answer has not been read
    setting.step()
    setting.step(3600.0)
    assert setting.actors == before
    for actor in before:
        actor.hangs = False
    for _ in range(20):
        setting.step()
    assert setting.actors == before
    assert setting.said == []


def test_changed_settings_come_with_the_next_network() -> None:
    setting = FleetSetting(1)
    setting.begin()
    setting.fleet.change(changed := tiny("search.simulations=2"))
    setting.fleet.publish([2.0], (2, 1))
    setting.step()
    (*_, last) = (ref for ref in setting.actors[0].calls if ref.method == "take")
    version, (_, network) = last.arguments
    assert version == 1
    assert network == PublishedNetwork([2.0], changed, (2, 1))


def test_actors_that_die_at_once_are_started_less_and_less_often() -> None:
    setting = FleetSetting(1)
    setting.begin()
    for _ in range(60):
        for actor in setting.actors:
            actor.dead = True
        setting.step()
    assert 4 < len(setting.cluster.started) < 20
