"""Who plays whom, and what is remembered; matches themselves are the arena's."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import pytest

from loop.tiny import tiny
from tengen import arena, games
from tengen.arena.results import Result
from tengen.errors import TengenError
from tengen.loop.networks import Saved
from tengen.loop.rating import Rater, anchor

KEY = jax.random.key(0)


class Folder:
    """Networks by name; `lost` ones cannot be read."""

    def __init__(self, *names: str, lost: str = "") -> None:
        self.saved = [Saved(10.0 * step, step, name) for step, name in enumerate(names, 1)]
        self.lost, self.read = lost, []

    def parameters(self, name: str) -> Any:
        if name == self.lost:
            raise TengenError(f"{name}: gone")
        self.read.append(name)
        return name


@pytest.fixture
def matches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, Any, Any]]:
    """Every match is won 3 to 1, and noted."""
    played: list[tuple[str, str, Any, Any]] = []

    def play(game: Any, a: Any, b: Any, key: Any, settings: Any) -> Any:
        played.append((a.name, b.name, a.params, b.params))
        return SimpleNamespace(result=Result(a.name, b.name, 3, 0, 1))

    monkeypatch.setattr(arena, "play", play)
    return played


def rater(folder: Path, networks: Folder, *overrides: str) -> Rater:
    config = tiny("rating.earlier=2", *overrides)
    return Rater(folder, games.make("tic_tac_toe"), None, config.search, config.rating, networks)


def test_references_and_the_newest_of_the_earlier_networks(tmp_path: Path, matches: list[Any]) -> None:
    networks = Folder("a", "b", "c", "d")
    found = rater(tmp_path, networks, "rating.references=[mcts:9,random]")
    assert found.ratings is None
    list(found.rate("d", "weights", KEY))
    assert [names[:2] for names in matches] == [("d", "mcts:9"), ("d", "random"), ("d", "c"), ("d", "b")]
    assert matches[2][2:] == ("weights", "c"), "one is played with what is in memory, the other with what was saved"
    networks.saved.append(Saved(50.0, 5, "e"))
    list(found.rate("e", "new", KEY))
    assert matches[-2] == ("e", "d", "new", "weights"), "what has been in memory is not read again"
    assert networks.read == ["c", "b"]
    again = rater(tmp_path, networks)
    assert again.results == found.results
    assert again.ratings.anchor == "random"
    assert [point.elapsed for point in again.curve()] == [20.0, 30.0, 40.0, 50.0]


def test_without_earlier_networks(tmp_path: Path, matches: list[Any]) -> None:
    list(rater(tmp_path, Folder("a", "b"), "rating.earlier=0").rate("b", 0, KEY))
    assert [names[:2] for names in matches] == [("b", "random")]


def test_each_match_is_on_the_disk_before_the_next(tmp_path: Path, matches: list[Any]) -> None:
    found = rater(tmp_path, Folder("a", "b"))
    for number, _ in enumerate(found.rate("b", 0, KEY), 1):
        assert len(matches) == number == len(arena.read(tmp_path / "results.jsonl"))


def test_a_network_that_is_gone_is_named_and_left_out(tmp_path: Path, matches: list[Any]) -> None:
    found = rater(tmp_path, Folder("a", "b", "c", lost="b"))
    list(found.rate("c", 0, KEY))
    assert [names[1] for names in matches] == ["random", "a"]
    assert found.notes == ["an earlier network cannot play: b: gone"]


@pytest.mark.parametrize(
    ("names", "zero"),
    [
        (["s1", "random", "mcts:5"], "random"),
        (["s1", "mcts:100", "mcts:25"], "mcts:25"),
        (["s2", "s1"], "s1"),
    ],
)
def test_the_scale_begins_with_the_weakest_reference_that_played(names: list[str], zero: str) -> None:
    assert anchor([Result("x" if name != "s1" else "y", name, 1, 0, 0) for name in names]) == zero
