"""The folders of networks: names, order, and what a network with a verdict becomes."""

from pathlib import Path

import pytest

from tengen.errors import TengenError
from tengen.run import registry
from tests.helpers.pipeline_data import put


def test_names() -> None:
    name = registry.name_of("my-run_2", "big", 64, 500)
    assert name == "my-run_2-big-s64-d500"
    assert registry.parse(name) == (64, "big")
    for other in ("", "random", "a-b-s1", "a-b-sx-d1", "a-b-s1-d1.part", ".a-b-s1-d1.0a.part", "a-b-s1-d1.corrupt"):
        assert registry.parse(other) is None


def test_orders(tmp_path: Path, saved: list[Path]) -> None:
    assert registry.newest(tmp_path) is None
    assert registry.next_number(tmp_path) == 1
    for number, samples in enumerate((300, 100, 200), 1):
        put(tmp_path, registry.ACCEPTED, samples, saved[0], accepted=True, number=number)
        put(tmp_path, registry.CANDIDATES, samples + 1, saved[0])
        put(tmp_path, registry.EXTRA, samples + 2, saved[0])
        put(tmp_path, registry.REJECTED, samples + 3, saved[0], accepted=False)
    assert [entry.samples for entry in registry.accepted(tmp_path)] == [300, 100, 200], "as they were accepted"
    assert registry.newest(tmp_path).samples == 200
    assert registry.next_number(tmp_path) == 4
    assert [entry.samples for entry in registry.candidates(tmp_path)] == [101, 201, 301]
    assert [entry.samples for entry in registry.extra(tmp_path)] == [102, 202, 302]
    assert [entry.samples for entry in registry.rejected(tmp_path)] == [103, 203, 303]


def test_half_a_folder_is_no_network_but_a_candidate_that_the_gate_must_see(tmp_path: Path) -> None:
    put(tmp_path, registry.ACCEPTED, 100, None, accepted=True, number=1)
    put(tmp_path, registry.CANDIDATES, 100, None)
    assert registry.accepted(tmp_path) == []
    assert len(registry.candidates(tmp_path)) == 1


def test_where_a_network_is(tmp_path: Path, saved: list[Path]) -> None:
    entry = put(tmp_path, registry.CANDIDATES, 100, saved[0])
    assert registry.known(tmp_path, entry.name) == entry.path
    assert registry.known(tmp_path, "other") is None
    assert not registry.is_judged(tmp_path, entry)
    registry.decide(entry, {"accepted": True, "number": 1})
    assert registry.candidates(tmp_path)[0].accepted is True
    moved = registry.move(tmp_path, entry)
    assert registry.known(tmp_path, entry.name) == moved == tmp_path / registry.ACCEPTED / entry.name
    assert registry.verdict(moved)["number"] == 1
    copy = put(tmp_path, registry.CANDIDATES, 100, saved[1])
    assert registry.is_judged(tmp_path, copy)
    registry.drop(copy)
    assert registry.candidates(tmp_path) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2, "accepted": true}', '{"schema": 1, "accepted": "yes"}'])
def test_verdicts_that_say_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / registry.VERDICT).write_text(text)
    assert registry.verdict(tmp_path) == {}


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "models" / "one"

    def write(folder: Path) -> None:
        (folder / "a").write_text("1")
        assert not target.exists()

    registry.publish(target, write)
    assert (target / "a").read_text() == "1"
    registry.publish(target, lambda folder: (folder / "b").write_text("2"))
    assert [path.name for path in target.iterdir()] == ["a"], "what is there is kept"

    def fail(folder: Path) -> None:
        (folder / "a").write_text("1")
        raise OSError(28, "No space left on device")

    with pytest.raises(TengenError, match="No space left"):
        registry.publish(tmp_path / "models" / "two", fail)
    assert [path.name for path in target.parent.iterdir()] == ["one"]
