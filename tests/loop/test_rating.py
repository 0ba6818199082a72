"""Who plays whom, and what is remembered; matches themselves are the arena's."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import jax
import numpy as np
import pytest

from tengen import games, match
from tengen.errors import TengenError
from tengen.loop import rating
from tengen.loop.rating import Rater
from tengen.match.device_match import Match, MatchStanding
from tengen.match.ratings import anchor
from tengen.match.results import MatchResult
from tengen.run.networks import UNTRAINED, SavedNetwork
from tests.helpers.tiny_runs import tiny

KEY = jax.random.key(0)


class Folder:
    """Networks by name; `lost` ones cannot be read."""

    def __init__(self, *names: str, lost: str = "") -> None:
        self.saved = [SavedNetwork(10.0 * step, step, name) for step, name in enumerate(names, 1)]
        self.lost, self.read = lost, []

    def load(self, name: str) -> tuple[Any, None]:
        if name == self.lost:
            raise TengenError(f"{name}: gone")
        self.read.append(name)
        return name, None


class Clock:
    """Time that passes as matches take it."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


class Table:
    """Rounds that are won 3 to 1 in every four games; every opponent has to be compiled once."""

    compiling, playing = 10.0, 2.0  # seconds
    endless = ""  # an opponent against whom no game ends in the time there is
    clock = Clock()
    openings: ClassVar[Any] = SimpleNamespace(note=lambda game: "")
    known: ClassVar[set[str]] = set()
    played: ClassVar[list[tuple[str, str, Any, Any]]] = []

    def __init__(self, game: Any, a: Any, b: Any, key: Any, pairs: int, at_once: int, opening_moves: int) -> None:
        self.a, self.b, self.size = a, b, at_once
        self.count = -(-pairs // at_once)

    def play(self, number: int, *, stop: Any, show: Any, apart: bool, exit_while_compiling: bool) -> Match:
        assert apart
        kind = self.b.name if ":" in self.b.name or self.b.name == "random" else "network"
        # Finished games, and the last words of the run, would be lost if it could be left at another time.
        assert exit_while_compiling == (kind not in self.known)
        self.clock.time += self.compiling * (kind not in self.known)
        self.known.add(kind)
        games = 2 * self.size
        show(MatchStanding(0, games, 1))
        self.clock.time += self.playing / 2
        cut = stop()
        if self.b.name == self.endless:
            self.clock.time, cut = self.clock.time + 100.0, stop()
        self.clock.time += 0 if cut else self.playing / 2
        self.played.append((self.a.name, self.b.name, self.a.params, self.b.params))
        results = np.array([1, 1, 1, -1] * games, np.float32)[:games]
        over = games // 2 if cut else games
        finished = np.arange(games) < (0 if self.b.name == self.endless else over)
        zeros = np.zeros((games, 1))
        return Match("game", self.a.name, self.b.name, results, zeros, zeros[:, 0], zeros[:, 0], zeros, 0, finished)


@pytest.fixture
def matches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, Any, Any]]:
    """Every round is won 3 to 1, and noted."""
    monkeypatch.setattr(Table, "clock", Clock())
    monkeypatch.setattr(Table, "known", set())
    monkeypatch.setattr(Table, "played", [])
    monkeypatch.setattr(rating, "MatchRounds", Table)
    return Table.played


def rater(folder: Path, networks: Folder, *overrides: str) -> Rater:
    config = tiny("rating.earlier=2", *overrides)
    game = games.make("tic_tac_toe")
    return Rater(folder, game, None, config.search, config.rating, networks, lambda: Table.clock())


def until(seconds: float) -> Any:
    """`left`, for so long from now."""
    end = Table.clock.time + seconds
    return lambda: end - Table.clock.time


def test_references_and_the_newest_of_the_earlier_networks(tmp_path: Path, matches: list[Any]) -> None:
    networks = Folder("a", "b", "c", "d")
    found = rater(tmp_path, networks, "rating.references=[mcts:9,random]")
    assert found.ratings is None
    list(found.rate("d", "weights", KEY))
    assert [names[:2] for names in matches] == [("d", "mcts:9"), ("d", "random"), ("d", "c"), ("d", "b")]
    assert matches[2][2:] == ("weights", "c"), "one is played with what is in memory, the other with what was saved"
    networks.saved.append(SavedNetwork(50.0, 5, "e"))
    list(found.rate("e", "new", KEY))
    assert ("e", "d", "new", "weights") in matches, "what has been in memory is not read again"
    assert networks.read == ["c", "b"]
    again = rater(tmp_path, networks)
    assert again.results == found.results
    assert again.ratings.anchor == "random"
    assert [point.elapsed for point in again.curve()] == [20.0, 30.0, 40.0, 50.0]


def test_the_untrained_network_begins_the_curve(tmp_path: Path, matches: list[Any]) -> None:
    networks = Folder()
    found = rater(tmp_path, networks, "rating.references=[random,mcts:9]")
    list(found.rate(UNTRAINED, "weights", KEY))
    assert {names[:2] for names in matches} == {(UNTRAINED, "random")}, "nobody else is worth the time"
    networks.saved.append(SavedNetwork(50.0, 5, "e"))
    list(found.rate("e", "new", KEY))
    assert [point.elapsed for point in found.curve()] == [0.0, 50.0]
    assert found.rated().networks == [(0.0, UNTRAINED), (50.0, "e")]
    assert all(point.error > 0 for point in found.curve())


def test_long_matches_are_played_in_two_rounds_of_which_a_score_is_made(tmp_path: Path, matches: list[Any]) -> None:
    found = rater(tmp_path, Folder(), "rating.games=40", "rating.references=[random,mcts:9]")
    scores = list(found.rate("e", "new", KEY))
    assert [names[1] for names in matches] == ["random", "mcts:9", "random", "mcts:9"], "each before any comes again"
    assert [(score.b, score.games, score.wins) for score in scores] == [
        ("random", 40, 30),
        ("mcts:9", 40, 30),
    ]
    assert [result.games for result in match.read(found.path)] == 4 * [20]


def test_on_a_gpu_a_match_is_one_round(tmp_path: Path, matches: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    (score,) = rater(tmp_path, Folder(), "rating.games=40").rate("e", "new", KEY)
    assert [names[1] for names in matches] == ["random"]
    assert score.games == 40


def test_rounds_that_would_take_too_long_are_not_begun(tmp_path: Path, matches: list[Any]) -> None:
    found = rater(tmp_path, Folder(), "rating.games=40", "rating.references=[random,mcts:9,mcts:99]")
    found.compiling = 11.0  # a guess
    list(found.rate("e", "new", KEY, left=until(5.0)))
    assert not matches
    assert found.notes == ["e was not rated: there was no time for a match"]
    # The first is compiled (10 s) and played (2 s); another is thought to take 6 s and 2 s; a second round takes 2 s.
    list(found.rate("e", "new", KEY, left=until(19.0)))
    assert [names[1] for names in matches] == ["random", "random"]
    assert Table.clock.time == found.spent == 14.0
    assert found.expected(9.0) == 2 * 2.0, "what was never compiled is left out, unless there is ample time"
    assert found.expected(15.0) == 2.0 + 1.25 * (6.0 + 2.0) + 2.0
    matches.clear()
    list(found.rate("e", "new", KEY, left=until(100.0)))
    assert sorted(names[1] for names in matches) == sorted(2 * ["random", "mcts:9", "mcts:99"])
    assert found.expected(1e9) == 6 * 2.0
    assert found.expected(5.0) == 2 * 2.0


def test_at_the_end_of_the_time_the_games_that_are_finished_count(tmp_path: Path, matches: list[Any]) -> None:
    found = rater(tmp_path, Folder(), "rating.games=8")
    (score,) = found.rate("e", "new", KEY, left=until(10.5))
    assert score.games == 4
    assert [result.games for result in match.read(found.path)] == [4]


def test_an_opponent_that_is_too_slow_is_left_out(
    tmp_path: Path, matches: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Table, "endless", "mcts:9")
    found = rater(tmp_path, Folder("a"), "rating.references=[random,mcts:9]", "rating.games=8")
    list(found.rate("b", "new", KEY, left=until(60.0)))
    assert [names[1] for names in matches].count("mcts:9") == 1
    assert found.notes == []
    assert found.expected(100.0) == pytest.approx(2.0 + 1.25 * 12.0), "no time is reserved for it"
    matches.clear()
    list(found.rate("c", "new", KEY, left=until(60.0)))
    assert {names[1] for names in matches} == {"random", "a"}, "it would take too long"
    list(found.rate("d", "new", KEY, left=until(1000.0)))
    assert [names[1] for names in matches].count("mcts:9") == 1, "there may be time enough now"
    assert found.notes == ["mcts:9 plays no more matches in this run: no game ended in time"]
    list(found.rate("e", "new", KEY, left=until(10000.0)))
    assert [names[1] for names in matches].count("mcts:9") == 1


def test_a_rating_with_time_for_compiling_alone_shuts_nobody_out(tmp_path: Path, matches: list[Any]) -> None:
    found = rater(tmp_path, Folder(), "rating.games=8")
    list(found.rate("b", "new", KEY, left=until(9.0)))
    matches.clear()
    list(found.rate("c", "new", KEY, left=until(100.0)))
    assert [names[1] for names in matches] == ["random"]
    assert found.notes == []


def test_nobody_to_play_is_no_lack_of_time(tmp_path: Path, matches: list[Any]) -> None:
    found = rater(tmp_path, Folder(), "rating.references=[]")
    assert not list(found.rate(UNTRAINED, "weights", KEY))
    assert not found.notes


def test_those_come_first_from_whom_most_can_be_learned(tmp_path: Path, matches: list[Any]) -> None:
    networks = Folder("a", "b")
    found = rater(tmp_path, networks, "rating.references=[random,mcts:9,mcts:99]", "rating.earlier=1")
    assert found._in_order("b") == ["random", "mcts:9", "mcts:99", "a"], "nothing is known"
    found.results += [
        MatchResult("a", "random", 100, 0, 0),
        MatchResult("a", "mcts:9", 60, 0, 40),
        MatchResult("a", "mcts:99", 40, 0, 60),
    ]
    assert found._in_order("b") == ["mcts:9", "a", "mcts:99", "random"], (
        "who waited longest; what is certain comes last"
    )
    assert found._in_order("b", everybody=False) == ["mcts:9", "a", "mcts:99"], "and is left out on the way"
    found.results.append(MatchResult("b", "mcts:9", 50, 0, 50))
    assert found._in_order("c")[:2] == ["mcts:99", "b"]


def test_opponents_who_always_lose_are_played_if_there_are_no_others(tmp_path: Path, matches: list[Any]) -> None:
    found = rater(tmp_path, Folder("a"), "rating.references=[random]", "rating.earlier=0")
    found.results.append(MatchResult("a", "random", 100, 0, 0))
    assert found._in_order("b", everybody=False) == ["random"]


def test_nobody_to_play_though_a_gate_has_results(tmp_path: Path, matches: list[Any]) -> None:
    found = rater(tmp_path, Folder("a", "b"), "rating.references=[]", "rating.earlier=0")
    found.results.append(MatchResult("a", "b", 10, 0, 10))
    assert found._in_order("b", everybody=False) == []


def test_without_earlier_networks(tmp_path: Path, matches: list[Any]) -> None:
    list(rater(tmp_path, Folder("a", "b"), "rating.earlier=0").rate("b", 0, KEY))
    assert [names[:2] for names in matches] == [("b", "random")]


def test_each_match_is_on_the_disk_before_the_next(tmp_path: Path, matches: list[Any]) -> None:
    found = rater(tmp_path, Folder("a", "b"))
    written = []
    list(found.rate("b", 0, KEY, show=lambda _: written.append(len(match.read(tmp_path / "results.jsonl")))))
    assert sorted(set(written)) == [0, 1]
    assert len(matches) == len(match.read(tmp_path / "results.jsonl")) == 2


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
    assert anchor(names) == zero
