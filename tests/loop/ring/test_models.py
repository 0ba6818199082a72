"""The folders of networks: names, order, and what a network with a verdict becomes."""

from pathlib import Path

import pytest

from loop.ring.made import put
from tengen.errors import TengenError
from tengen.loop.ring import models


def test_names() -> None:
    name = models.name_of("my-run_2", "big", 64, 500)
    assert name == "my-run_2-big-s64-d500"
    assert models.parse(name) == (64, "big")
    for other in ("", "random", "a-b-s1", "a-b-sx-d1", "a-b-s1-d1.part", ".a-b-s1-d1.0a.part", "a-b-s1-d1.corrupt"):
        assert models.parse(other) is None


def test_orders(tmp_path: Path, saved: list[Path]) -> None:
    assert models.newest(tmp_path) is None
    assert models.next_number(tmp_path) == 1
    for number, samples in enumerate((300, 100, 200), 1):
        put(tmp_path, models.ACCEPTED, samples, saved[0], accepted=True, number=number)
        put(tmp_path, models.CANDIDATES, samples + 1, saved[0])
        put(tmp_path, models.EXTRA, samples + 2, saved[0])
        put(tmp_path, models.REJECTED, samples + 3, saved[0], accepted=False)
    assert [entry.samples for entry in models.accepted(tmp_path)] == [300, 100, 200], "as they were accepted"
    assert models.newest(tmp_path).samples == 200
    assert models.next_number(tmp_path) == 4
    assert [entry.samples for entry in models.candidates(tmp_path)] == [101, 201, 301]
    assert [entry.samples for entry in models.extra(tmp_path)] == [102, 202, 302]
    assert [entry.samples for entry in models.rejected(tmp_path)] == [103, 203, 303]


def test_half_a_folder_is_no_network_but_a_candidate_that_the_gate_must_see(tmp_path: Path) -> None:
    put(tmp_path, models.ACCEPTED, 100, None, accepted=True, number=1)
    put(tmp_path, models.CANDIDATES, 100, None)
    assert models.accepted(tmp_path) == []
    assert len(models.candidates(tmp_path)) == 1


def test_where_a_network_is(tmp_path: Path, saved: list[Path]) -> None:
    entry = put(tmp_path, models.CANDIDATES, 100, saved[0])
    assert models.known(tmp_path, entry.name) == entry.path
    assert models.known(tmp_path, "other") is None
    assert not models.is_judged(tmp_path, entry)
    models.decide(entry, {"accepted": True, "number": 1})
    assert models.candidates(tmp_path)[0].accepted is True
    moved = models.move(tmp_path, entry)
    assert models.known(tmp_path, entry.name) == moved == tmp_path / models.ACCEPTED / entry.name
    assert models.verdict(moved)["number"] == 1
    copy = put(tmp_path, models.CANDIDATES, 100, saved[1])
    assert models.is_judged(tmp_path, copy)
    models.drop(copy)
    assert models.candidates(tmp_path) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2, "accepted": true}', '{"schema": 1, "accepted": "yes"}'])
def test_verdicts_that_say_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / models.VERDICT).write_text(text)
    assert models.verdict(tmp_path) == {}


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "models" / "one"

    def write(folder: Path) -> None:
        (folder / "a").write_text("1")
        assert not target.exists()

    models.publish(target, write)
    assert (target / "a").read_text() == "1"
    models.publish(target, lambda folder: (folder / "b").write_text("2"))
    assert [path.name for path in target.iterdir()] == ["a"], "what is there is kept"

    def fail(folder: Path) -> None:
        (folder / "a").write_text("1")
        raise OSError(28, "No space left on device")

    with pytest.raises(TengenError, match="No space left"):
        models.publish(tmp_path / "models" / "two", fail)
    assert [path.name for path in target.parent.iterdir()] == ["one"]
