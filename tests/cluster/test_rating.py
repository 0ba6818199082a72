"""Ratings on another node."""

from pathlib import Path

from tengen.cluster.rating import place
from tengen.nets.specs import FILE_NAME


def test_networks_that_play_no_more_are_removed(tmp_path: Path) -> None:
    place(tmp_path, {"a": b"1", "b": b"2"})
    place(tmp_path, {"b": b"2", "c": b"3"})
    found = {path.parent.name: path.read_bytes() for path in tmp_path.glob(f"*/{FILE_NAME}")}
    assert found == {"b": b"2", "c": b"3"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "c"]
