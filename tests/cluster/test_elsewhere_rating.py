"""Ratings on another node."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jax
import numpy as np
import pytest

from tengen.cluster.actor import ActorPlace
from tengen.cluster.elsewhere import RatedMatches, RatingActor, RatingElsewhere, place
from tengen.cluster.run import ClusterRun
from tengen.cores import LIMIT
from tengen.match.results import MatchResult
from tengen.nets.specs import FILE_NAME
from tengen.run.goals import RunCounts
from tengen.run.networks import UNTRAINED
from tests.helpers.fake_ray import FakeCluster, FakeRay
from tests.helpers.tiny_runs import tiny


def test_networks_that_play_no_more_are_removed(tmp_path: Path) -> None:
    place(tmp_path, {"a": b"1", "b": b"2"})
    place(tmp_path, {"b": b"2", "c": b"3"})
    found = {path.parent.name: path.read_bytes() for path in tmp_path.glob(f"*/{FILE_NAME}")}
    assert found == {"b": b"2", "c": b"3"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "c"]


def test_an_opponent_that_is_gone_is_left_out(tmp_path: Path) -> None:
    place(tmp_path, {"new": b"1", "old": b"2"})
    fake = FakeCluster(FakeRay(lambda actor: None), 1)
    cluster: Any = fake
    rating = RatingElsewhere(cluster, tiny(), 1)
    models = {name: tmp_path / name for name in ("new", "old", "gone")}
    rating.rate("new", tmp_path / "results.jsonl", models, 60.0)
    (call,) = (call for call in fake.started[0].calls if call.method == "rate")
    assert call.arguments == ("new", b"", {"new": b"1", "old": b"2"}, 60.0, False, None)


@pytest.mark.parametrize("last", [False, True])
def test_the_untrained_network_is_rated_first_and_the_last_network_plays_everybody(
    last: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT, "1")
    rated: list[tuple[str, Any, bool]] = []

    def rate(name: str, weights: Any, key: Any, *, left: Any, everybody: bool = True) -> list[Any]:
        rated.append((name, weights, everybody))
        assert left() <= (30.0 if name == UNTRAINED else 60.0)
        return []

    actor, nothing = RatingActor(tiny(), ActorPlace(1, 1, 0.0)), lambda: None
    path = tmp_path / "ratings" / "results.jsonl"
    path.parent.mkdir()
    actor._built = SimpleNamespace(rate=rate, path=path, refresh=nothing, results=[], notes=[])
    actor._networks = cast(Any, SimpleNamespace(look=nothing, parameters=lambda name: 2.0))
    actor._structure = jax.tree.structure({"a": 0.0})
    actor.rate("new", b"", {"new": b"1"}, 60.0, last, [np.float32(1.0)])
    assert rated == [(UNTRAINED, {"a": 1.0}, True), ("new", 2.0, last)]


def test_each_network_of_a_rating_is_noted_and_the_untrained_one_is_rated_once(tmp_path: Path) -> None:
    found = [MatchResult(UNTRAINED, "random", 1, 0, 1), MatchResult("new", "random", 2, 0, 0)]
    noted, begun, run = [], [], cast(Any, object.__new__(ClusterRun))
    rating = SimpleNamespace(
        busy=False,
        rated=lambda patience: RatedMatches("new", tuple(found)),
        rate=lambda name, *_, last, untrained: begun.append((name, last, untrained)),
    )
    rater = SimpleNamespace(path=tmp_path / "results.jsonl", refresh=lambda: None, notes=[], opponents=lambda name: [])
    vars(run).update(_rating=rating, rater=rater, _untrained={"a": np.float32(1.0)}, counts=RunCounts())
    vars(run).update(
        networks=SimpleNamespace(saved=[], path=lambda name: tmp_path), _metrics=SimpleNamespace(elapsed=1.0)
    )
    vars(run).update(_note_matches=lambda name, matches: noted.append((name, matches)))
    vars(run).update(reporter=SimpleNamespace(say=lambda text: None), config=tiny(), _wait_for_rating=lambda *_: None)
    for _ in range(2):
        run._rate_untrained(9.0, lambda: False)  # nothing is played in the learner's process
        run._rate("new", 9.0, lambda: False, last=True)
        run._hear_rating()
    assert noted == [(UNTRAINED, found[:1]), ("new", found[1:])] * 2
    assert begun == [("new", True, [1.0]), ("new", True, None)]
