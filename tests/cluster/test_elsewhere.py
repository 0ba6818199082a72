"""Tasks on another node, with a stand-in for Ray."""

from typing import Any

from tengen.cluster.elsewhere import Elsewhere, TaskResult
from tests.helpers.fake_ray import FakeCluster, FakeRay, RayTaskError
from tests.helpers.tiny_runs import tiny


def test_a_task_ends_fails_or_is_given_up_and_then_another_actor_is_started() -> None:
    ray, now = FakeRay(lambda actor: None), [0.0]
    fake = FakeCluster(ray, 1)
    cluster: Any = fake
    elsewhere = Elsewhere(object, cluster, tiny(), 1, lambda: now[0])
    assert elsewhere.take() is None
    elsewhere.begin("judge", 10.0, "a")
    assert elsewhere.busy
    assert elsewhere.take() is None
    ready, call = fake.started[0].calls
    assert ready.method == "ready"
    assert (call.method, call.arguments) == ("judge", ("a",))
    call.done, call.value = True, "won"
    assert elsewhere.take() == TaskResult("won")
    assert not elsewhere.busy
    elsewhere.begin("judge", 10.0, "b")
    call = fake.started[0].calls[-1]
    call.done, call.value = True, RayTaskError("Traceback\nValueError: too large")
    assert elsewhere.take() == TaskResult(None, "ValueError: too large")
    assert fake.started[0].dead
    assert fake.started[0].calls[-1].method == "close", "it can remove its files before"
    elsewhere.begin("judge", 10.0, "c")
    now[0] += 1000.0
    assert elsewhere.take() == TaskResult(None, "its process does not answer")
    assert [actor.dead for actor in fake.started] == [True, True]


def test_a_task_is_given_up_if_there_is_no_room_for_it() -> None:
    now = [0.0]
    fake = FakeCluster(FakeRay(lambda actor: None), 1)
    cluster: Any = fake
    elsewhere = Elsewhere(object, cluster, tiny(), 1, lambda: now[0])
    elsewhere.begin("judge", 4 * 3600.0, "a")
    fake.started[0].hangs = True
    now[0] = 599.0
    assert elsewhere.take() is None
    now[0] = 600.0
    assert elsewhere.take() == TaskResult(None, "no node has had room for its process for 600 s")
    elsewhere.begin("judge", 4 * 3600.0, "a")
    assert elsewhere.take() is None
    fake.started[1].hangs = True  # now it plays
    now[0] += 3 * 3600.0
    assert elsewhere.take() is None
