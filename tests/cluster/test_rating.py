"""Ratings on another node."""

from pathlib import Path
from typing import Any

from tengen.cluster.rating import RatingElsewhere, place
from tengen.nets.specs import FILE_NAME
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
    rating.begin("new", tmp_path / "results.jsonl", models, 60.0)
    (call,) = (call for call in fake.started[0].calls if call.method == "rate")
    assert call.arguments == ("new", b"", {"new": b"1", "old": b"2"}, 60.0)
