"""Self-play: which network plays, under whose name its rows are written, and how it ends."""

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from tengen import nets
from tengen import selfplay as games_at_once
from tengen.data.format.chunk import read_chunk
from tengen.data.records.records import load_records
from tengen.data.store.store import Store
from tengen.errors import OptionError, TengenError
from tengen.loop.parts import export
from tengen.loop.parts.selfplay import SelfplayPart
from tengen.nets import saving
from tengen.run import networks
from tengen.search import unfinished
from tengen.selfplay import driver
from tengen.selfplay.collector import on_host
from tengen.selfplay.driver import NoFiniteNumbers, PlayRounds
from tests.helpers.pipeline_data import network, put
from tests.helpers.pipelines import drive
from tests.helpers.tiny_runs import never, tiny

FIRST, SECOND, THIRD = (f"tic_tac_toe-main-s{n}-d{2 * n}" for n in (100, 200, 300))
QUICK = ("ring.poll_seconds=0.01", "data.record_share=1")
AT_THE_END = "ring.switch_in_game=false"


class Worker:
    """Self-play that remembers which network had a hand in which game."""

    def __init__(self, base: Path, *overrides: str, **limits: Any) -> None:
        self.base, self.said = base, []
        self.players: dict[tuple[int, int], set[str]] = defaultdict(set)
        self.weights: dict[str, Any] = {}
        self.part = SelfplayPart(tiny(*QUICK, *overrides), base, never, self.said.append, **limits)

    def run(self, calls: int) -> Any:
        return drive(self.part, calls)

    def noted(self, play: Callable[..., Any], rounds: PlayRounds, weights: Any, *more: Any) -> Any:
        name = self.part.network
        self.weights[name] = weights
        before = running(rounds)
        played = play(rounds, weights, *more)
        ended = [(int(a), int(b)) for each in played for a, b in on_host(each.finished).number]
        for number in {*before, *running(rounds), *ended}:
            self.players[number].add(name)
        return played

    def written(self) -> dict[str, list[tuple[int, int]]]:
        """Games in the chunks, by the names they are under."""
        self.part.flush()
        found: dict[str, list[tuple[int, int]]] = {}
        for chunk in Store(self.base / "selfplay").chunks():
            rows, meta = read_chunk(chunk.path)
            assert meta.network == chunk.network
            games = sorted({(int(a), int(b)) for a, b in rows["game"]})
            found.setdefault(chunk.network, []).extend(games)
        return found


def running(rounds: PlayRounds) -> list[tuple[int, int]]:
    return [(rounds._session, int(n)) for actor in rounds._actors or () for n in np.asarray(actor.number)]


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Worker]]:
    made: list[Worker] = []
    play = PlayRounds.play

    def noted(rounds: PlayRounds, *args: Any) -> Any:
        (owner,) = [each for each in made if each.part.rounds is rounds]
        return owner.noted(play, rounds, *args)

    def make(*args: Any, **more: Any) -> Worker:
        made.append(Worker(*args, **more))
        return made[-1]

    monkeypatch.setattr(PlayRounds, "play", noted)
    # Calls of about a second end hundreds of these games: short ones show more.
    monkeypatch.setattr(driver, "_SECONDS", 0.0)
    yield make
    for each in made:
        each.part.close()


def accept(base: Path, saved: list[Path], number: int) -> str:
    return put(base, networks.ACCEPTED, 100 * number, saved[number - 1], accepted=True, number=number).name


def test_it_begins_with_random_play(tmp_path: Path, worker: Any) -> None:
    one = worker(tmp_path)
    progress = one.run(30)
    assert one.part.network == networks.RANDOM
    assert progress.words.startswith("playing with random: ")
    assert list(one.written()) == [networks.RANDOM]
    (weights,) = one.weights.values()
    assert all(not np.asarray(leaf).any() for leaf in jax.tree.leaves(weights))
    records = [record for path in (tmp_path / "games" / "random").iterdir() for record in load_records(path)]
    assert {record.network for record in records} == {networks.RANDOM}
    assert len(records) == len({record.id for record in records}) == one.part.games


def test_what_it_counts_is_what_is_written(tmp_path: Path, worker: Any) -> None:
    one = worker(tmp_path)
    progress = one.run(30)
    assert progress.figures["games"] == one.part.games > 0
    assert progress.figures["rows"] == one.part.rows
    assert progress.figures["rows_written"] <= one.part.rows
    one.part.flush()
    assert Store(tmp_path / "selfplay").listing().rows == one.part.rows
    one.run(1)
    one.part.flush()
    assert one.part._figures()["rows_written"] == one.part.rows


@pytest.mark.parametrize(("limit", "what"), [("max_games", "games"), ("max_rows", "rows")])
def test_limits(tmp_path: Path, worker: Any, limit: str, what: str) -> None:
    one = worker(tmp_path, **{limit: 10})
    progress = drive(one.part)
    assert progress.ended
    assert progress.words.startswith(f"10 {what} are played: {one.part.games} games, ")
    assert "(0 not written yet)" in progress.words
    assert getattr(one.part, what) >= 10
    assert Store(tmp_path / "selfplay").listing().rows == one.part.rows, "all is written when it ends"


@pytest.mark.slow
def test_some_of_its_search_trees_are_written(tmp_path: Path, worker: Any) -> None:
    folder = tmp_path / "a" / "trees"
    one = worker(tmp_path / "run", trees=folder, max_trees=3)
    one.run(8)
    texts, trees = sorted(folder.glob("*.txt")), sorted(folder.glob("*.json"))
    assert [path.stem for path in texts] == [path.stem for path in trees]
    assert len(trees) == 3
    assert one.said[-1] == f"{folder}: 3 search trees are written, which is all that were wanted"
    for text, path in zip(texts, trees, strict=True):
        network, _, _, ply = path.stem.split("-")
        assert network == networks.RANDOM
        board = text.read_text().split("to play")[0]
        assert sum(board.count(stone) for stone in "xo") == int(ply.removeprefix("ply"))
        root = json.loads(path.read_text())
        assert root["visits"] >= 2
        assert 0 < sum(child["visits"] for child in root["children"]) < root["visits"]
    games = {path.stem.split("-")[2] for path in trees}
    assert len(games) == 3, "of different games"
    rounds = one.part.rounds
    present, found = rounds._actors[0].tree, rounds.tree(one.part._weights, place=2).tree
    assert bool(unfinished(present)[2]), "its search has just begun"
    assert not bool(unfinished(found)[0]), "and is completed here"


def test_the_newest_accepted_network_plays(tmp_path: Path, saved: list[Path], worker: Any) -> None:
    accept(tmp_path, saved, 2)
    accept(tmp_path, saved, 1)
    put(tmp_path, networks.CANDIDATES, 900, saved[2])
    put(tmp_path, networks.REJECTED, 800, saved[2], accepted=False)
    one = worker(tmp_path)
    one.run(5)
    assert list(one.weights) == [SECOND], "the one that was accepted last, from the first move on"
    net = saving.load(saved[1], dtype="float32")
    expected = jax.tree.leaves(nnx.state(nets.fold(net)))
    for found, wanted in zip(jax.tree.leaves(one.weights[SECOND]), expected, strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))
    assert list(one.written()) == [SECOND]


def test_the_stage_of_a_run_is_that_of_the_network_that_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    goal = ("goal.minutes=null", "goal.games=null", "goal.rows=null", "goal.steps=100")
    saved = SimpleNamespace(info=export._info({"steps": 60}))
    monkeypatch.setattr(networks, "known", lambda base, name: base / name)
    monkeypatch.setattr(saving, "read", lambda path: saved)
    part = SimpleNamespace(_base=Path(), network="new", _config=tiny(*goal))
    assert SelfplayPart._reached(part) == pytest.approx(0.6)  # type: ignore[arg-type]


@pytest.mark.parametrize("odd", [{"rows": "many", "seconds": None, "step": [1]}, {"rows": float("nan"), "step": -5}])
def test_a_network_that_knows_nothing_of_its_run_is_of_its_beginning(
    odd: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(networks, "known", lambda base, name: base / name)
    monkeypatch.setattr(saving, "read", lambda path: SimpleNamespace(info=odd))
    part = SimpleNamespace(_base=Path(), network="new", _config=tiny("goal.rows=100", "goal.minutes=1"))
    assert SelfplayPart._reached(part) == 0  # type: ignore[arg-type]


def test_stages_need_a_goal_that_the_parts_know(tmp_path: Path) -> None:
    stages = ('selfplay.stages=["0.5:1/1"]', "selfplay.cheap_simulations=1")
    games = ("goal.minutes=null", "goal.games=10", "goal.rows=null", "goal.steps=null")
    with pytest.raises(OptionError, match=r"^selfplay.stages: with a goal of games alone"):
        SelfplayPart(tiny(*stages, *games), tmp_path, never, print)


def test_it_looks_for_newer_ones_now_and_then(tmp_path: Path, saved: list[Path], worker: Any) -> None:
    one = worker(tmp_path, "ring.poll_seconds=3600")
    one.run(3)
    accept(tmp_path, saved, 1)
    one.run(3)
    assert one.part.network == networks.RANDOM
    one.part.look_now()
    one.run(1)
    assert one.part.network == FIRST
    assert one.said == [f"playing with {FIRST}"]


def test_games_go_on_with_a_newer_network(tmp_path: Path, saved: list[Path], worker: Any) -> None:
    one = worker(tmp_path)
    one.run(8)
    accept(tmp_path, saved, 1)
    one.part.look_now()
    one.run(1)
    assert one.part.network == FIRST, "at once"
    one.run(8)
    mixed = [number for number, players in one.players.items() if len(players) == 2]
    assert mixed, "games that one network began and the other ended"
    written = one.written()
    assert set(written) == {networks.RANDOM, FIRST}
    assert all(one.players[number] == {networks.RANDOM} for number in written[networks.RANDOM])
    assert all(FIRST in one.players[number] for number in written[FIRST])
    assert set(mixed) & set(written[FIRST])


def test_games_end_with_the_network_that_began_them(tmp_path: Path, saved: list[Path], worker: Any) -> None:
    one = worker(tmp_path, AT_THE_END)
    one.run(8)
    for number in (1, 2):
        name, calls = accept(tmp_path, saved, number), 0
        while one.part.network != name:
            one.run(1)
            calls += 1
            assert calls < 100
        assert calls > 1, "the games that ran were waited for"
        one.run(12)
    written = one.written()
    assert set(written) == {networks.RANDOM, FIRST, SECOND}
    for name, games in written.items():
        assert all(one.players[number] == {name} for number in games)
    everything = [number for games in written.values() for number in games]
    assert len(everything) == len(set(everything)), "no two games have one number"


def test_networks_that_come_quickly_do_not_hold_each_other_up(tmp_path: Path, saved: list[Path], worker: Any) -> None:
    one = worker(tmp_path, AT_THE_END)
    one.run(4)
    number = 0
    for number in range(1, 60):
        put(tmp_path, networks.ACCEPTED, number, saved[number % 3], accepted=True, number=number)
        one.part.look_now()
        one.run(1)
        if one.part.network != networks.RANDOM:
            break
    assert one.part.network == f"tic_tac_toe-main-s{number}-d{2 * number}", "the newest of them"


def test_a_network_that_cannot_be_used(tmp_path: Path, saved: list[Path], worker: Any) -> None:
    accept(tmp_path, saved, 1)
    bad = put(tmp_path, networks.ACCEPTED, 200, saved[1], accepted=True, number=2)
    (bad.path / saving.FILE_NAME).write_bytes(b"spoiled")
    one = worker(tmp_path)
    for _ in range(4):
        one.part.look_now()
        one.run(1)
    assert one.part.network == FIRST
    assert [said for said in one.said if said.startswith("a network cannot be used: ")] == one.said[:1]
    assert str(bad.path) in one.said[0]
    accept(tmp_path, saved, 3)
    one.part.look_now()
    one.run(1)
    assert one.part.network == THIRD


def test_a_network_with_a_name_that_no_part_gave_it(tmp_path: Path, saved: list[Path], worker: Any) -> None:
    there = tmp_path / networks.ACCEPTED / "g170"
    shutil.copytree(saved[0].parent, there)
    one = worker(tmp_path)
    for _ in range(2):
        one.part.look_now()
        one.run(1)
    assert one.part.network == networks.RANDOM
    assert one.said[:1] == [f"{there} does not play: its name must end in -sSAMPLES-dROWS; call it g170-main-s0-d0"]
    assert sum("g170" in said for said in one.said) == 1
    there.rename(there.with_name("g170-main-s0-d0"))
    one.part.look_now()
    one.run(1)
    assert one.part.network == "g170-main-s0-d0"


def test_a_network_that_gives_no_numbers(
    tmp_path: Path, saved: list[Path], worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = accept(tmp_path, saved, 1)
    one = worker(tmp_path, "data.chunk_rows=100000")
    one.run(6)

    def fail(*_: object) -> None:
        raise NoFiniteNumbers("it gives none")

    monkeypatch.setattr(one.part.rounds, "play", fail)
    with pytest.raises(TengenError, match=rf"models/{name}: it gives none; remove it, and self-play goes on"):
        one.run(1)
    assert one.part._figures()["rows_written"] == one.part.rows > 0, "games that ended before are kept"


@pytest.mark.slow
def test_a_network_of_another_kind(
    tmp_path: Path, saved: list[Path], worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "Selfplay", games_at_once.Selfplay)  # those that are shared know one kind
    accept(tmp_path, saved, 1)
    one = worker(tmp_path)
    one.run(6)
    before = one.part.rows
    put(tmp_path, networks.ACCEPTED, 200, network(tmp_path / "n", 1, "b2c8"), accepted=True, number=2)
    one.part.look_now()
    one.run(12)
    assert one.part.network == SECOND
    assert f"{SECOND} is another kind of network: the games that run are dropped" in one.said
    assert one.part.rows > before
    written = one.written()
    for name, games in written.items():
        assert all(one.players[number] == {name} for number in games)
    assert max(Counter(number for games in written.values() for number in games).values()) == 1
    assert one.part._figures()["rows_written"] == one.part.rows


def test_two_workers_know_nothing_of_each_other(tmp_path: Path, worker: Any) -> None:
    one, other = worker(tmp_path), worker(tmp_path)
    for _ in range(15):
        one.run(1)
        other.run(1)
    one.part.flush()
    written = other.written()[networks.RANDOM]
    assert len(written) == len(set(written)), "no game is another's"
    assert Store(tmp_path / "selfplay").listing().rows == one.part.rows + other.part.rows
    assert one.part.name != other.part.name


def test_it_says_when_it_compiles(tmp_path: Path, worker: Any) -> None:
    one = worker(tmp_path)
    shown: list[Any] = []
    one.part.show = shown.append
    one.run(3)
    assert [each.words for each in shown] == ["compiling the games, to play with random"]


def test_settings_that_do_not_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker(tmp_path)
    monkeypatch.setattr("tengen.loop.components.device_memory", lambda: 1)
    for _ in range(2):
        worker.part.change(tiny(*QUICK, "search.simulations=40"))
        assert worker.part._config.search.simulations == 4, "the trees have no room for more"
    assert [text.partition(":")[0] for text in worker.said] == ["self-play stays as it is"] * 2
    worker.part.close()
