"""From finished games to files."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.config.settings.search import SearchSettings
from tengen.config.settings.selfplay import SelfplaySettings
from tengen.data.format import katago_writing, lc0_writing
from tengen.data.format.chunk import read_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.katago import games_of
from tengen.data.format.rows import RowFormat
from tengen.data.records.records import load_records
from tengen.data.store.store import Store
from tengen.data.store.writer import Writer
from tengen.games.core import Observation
from tengen.loop.resuming import since
from tengen.nets import evaluators
from tengen.nets.outputs import Evaluation
from tengen.run.goals import RunCounts
from tengen.selfplay.collector import Collector, on_host
from tengen.selfplay.history import Finished
from tengen.selfplay.opponents import NOBODY, Opponent
from tengen.selfplay.playing import Selfplay
from tests.helpers import lc0_checker
from tests.helpers.katago_files import VISITS, check_turns
from tests.helpers.lc0_records import FOOLS_MATE, searched
from tests.helpers.lc0_records import MOVES as MOST
from tests.helpers.rows import PLAIN, joined, rows, same
from tests.helpers.selfplay_plans import EVALUATOR, SESSION, evaluate
from tests.helpers.tiny_runs import tiny
from tests.oracles.katago_targets import KnownGame, KnownTurn, turns

GAME = games.make("tic_tac_toe")
MOVES = [4, 0, 1, 2, 7]  # the middle column: player 0 wins


def finished(count: int, seed: int, row_count: int) -> Finished:
    """`count` times the same game, and rows that have nothing to do with it."""
    fields: dict[str, Any] = {name: np.zeros((count, 2), np.uint32) for name in Finished._fields}
    fields |= {
        "rows": rows(row_count, seed, PLAIN),
        "number": np.stack([np.full(count, 3), 100 * seed + np.arange(count)], -1).astype(np.uint32),
        "action": np.tile(np.array([*MOVES, -1, -1, -1, -1], np.int16), (count, 1)),
        "value": np.full((count, 9), 0.25, np.float16),
        "length": np.full(count, 5, np.int32),
        "opening": np.full(count, 2, np.int32),
        "result": np.ones(count, np.float32),
        "extra": {},
    }
    return Finished(**fields)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "selfplay")


def collector(base: Path, store: Store, writer: Writer, *overrides: str) -> Collector:
    data = tiny("data.chunk_rows=20", *overrides).data
    return Collector(base, store, GAME, PLAIN, writer, data, "net-s0-d0", session=3)


def test_chunks_of_whole_calls_that_say_what_was_played(tmp_path: Path, store: Store) -> None:
    with Writer() as writer:
        found = collector(tmp_path, store, writer)
        for seed, (count, row_count) in enumerate([(2, 8), (0, 0), (3, 12), (1, 4)]):
            found.add(finished(count, seed, row_count), 10.0 * (seed + 1))
        assert found.chunk == 0
        found.network = "net-s5-d20"
        found.flush()
        assert found.chunk == 1
        found.flush()  # nothing new
    first, second = store.chunks()
    assert (first.network, second.network) == ("net-s0-d0", "net-s5-d20")
    content, meta = read_chunk(first.path)
    assert same(content, joined(rows(8, 0, PLAIN), rows(12, 2, PLAIN)))
    assert meta.more == {"session": 3, "finished": 5, "evaluations": 60.0}
    assert read_chunk(second.path)[1].more == {"session": 3, "finished": 1, "evaluations": 40.0}


def test_what_a_checkpoint_has_counted_is_not_told_again(tmp_path: Path, store: Store) -> None:
    with Writer() as writer:
        found = collector(tmp_path, store, writer)
        found.add(finished(2, 0, 0), 10.0)  # games without rows
        found.counted()
        found.add(finished(1, 1, 4), 5.0)
        found.flush()
    (chunk,) = store.chunks()
    assert read_chunk(chunk.path)[1].more == {"session": 3, "finished": 1, "evaluations": 5.0}


def test_it_counts_on_from_the_chunks_that_are_there(tmp_path: Path, store: Store) -> None:
    with Writer() as writer:
        first = collector(tmp_path, store, writer)
        assert first.chunk == -1
        first.add(finished(1, 1, 4), 5.0)
        first.flush()
        assert collector(tmp_path, Store(tmp_path / "selfplay"), writer).chunk == 0


def test_records_of_a_share_of_the_games(tmp_path: Path, store: Store) -> None:
    with Writer() as writer:
        found = collector(tmp_path, store, writer, "data.record_share=0.4")
        for seed in range(10):
            found.add(finished(5, seed, 0), 0.0)
        found.flush()
    (file,) = (tmp_path / "games" / "net-s0-d0").iterdir()
    records = load_records(file)
    assert len(records) == 20
    assert file.stem == records[0].id == "00000003-000000002"
    assert len({record.id for record in records}) == 20
    assert records[0].result == 1
    assert records[0].opening == 2
    assert records[0].values == (None, None, 0.25, 0.25, 0.25)
    assert records[0].network == "net-s0-d0"


def test_records_name_the_opponent_where_there_was_one(tmp_path: Path, store: Store) -> None:
    data = tiny("data.chunk_rows=20", "data.record_share=1.0").data
    opponents = [Opponent("first", 1, 0.5, lambda *_: np.zeros(0)), Opponent("all", 0, 0.2, lambda *_: np.zeros(0))]
    with Writer() as writer:
        found = Collector(tmp_path, store, GAME, PLAIN, writer, data, "net-s0-d0", 3, opponents)
        found.add(finished(3, 1, 0)._replace(extra={"opponent": np.array([0, NOBODY, 1], np.int8)}), 0.0)
        found.flush()
    (file,) = (tmp_path / "games" / "net-s0-d0").iterdir()
    players = [record.players for record in load_records(file)]
    assert players == [("net-s0-d0", "first"), ("net-s0-d0", "net-s0-d0"), ("all", "net-s0-d0")]


def test_files_never_have_more_rows_than_may_be_read(tmp_path: Path, store: Store) -> None:
    with Writer() as writer:
        found = collector(tmp_path, store, writer, "data.max_chunk_rows=10000")
        found.add(finished(6_000, 0, 24_002), 10.0)  # games of four rows, and one of two
        found.flush()
    read = [read_chunk(chunk.path, limit=10_000) for chunk in store.chunks()]
    assert [len(content["ply"]) for content, _ in read] == [10_000, 10_000, 4_002]
    assert same(joined(*(content for content, _ in read)), rows(24_002, 0, PLAIN))
    assert [(meta.games, meta.more["finished"], meta.more["evaluations"]) for _, meta in read] == [
        (2500, 2500, 0.0),
        (2500, 2500, 0.0),
        (1001, 1000, 10.0),
    ]
    assert (found.written_rows, found.chunk) == (24_002, 2)


def test_a_stray_number_is_not_the_last_one(tmp_path: Path, store: Store) -> None:
    with Writer() as writer:
        first = collector(tmp_path, store, writer)
        first.add(finished(1, 1, 4), 5.0)
        first.flush()
        (path,) = (tmp_path / "selfplay").glob("*/*.npz")
        path.with_name("9999999999-x.npz").write_bytes(path.read_bytes())
        assert collector(tmp_path, Store(tmp_path / "selfplay"), writer).chunk == 0


def test_games_for_lc0_are_files_that_a_run_reads_back(tmp_path: Path, store: Store) -> None:
    chess = games.make("chess", max_moves=MOST)
    table, actions = searched(FOOLS_MATE, opening=1, full=[False, True, False, True])
    fields: dict[str, Any] = finished(1, 0, 0)._asdict() | {
        "rows": table,
        "rows_count": np.int32(2),
        "others_count": np.int32(1),
        "number": np.array([[3, 7]], np.uint32),
        "action": actions[None],
        "length": np.array([4], np.int32),
        "result": np.array([-1.0], np.float32),
    }
    data = replace(tiny("data.chunk_rows=4", "data.record_share=0").data, format="lc0")
    with Writer() as writer:
        found = Collector(tmp_path, store, chess, RowFormat.of(chess), writer, data, "net", session=3)
        for _ in range(3):
            found.add(Finished(**fields), 5.0)
        found.flush()
        assert (found.written_rows, found.chunk) == (6, 1)
    names = [item.path.relative_to(store.folder).as_posix() for item in store.chunks()]
    assert names == ["net/lc0/0000000000-a-00000.gz", "net/lc0/0000000000-a-00001.gz", "net/lc0/0000000001-a-00000.gz"]
    assert {item.network for item in store.chunks()} == {"net"}
    assert len(lc0_checker.check(store.folder / names[0])) == 3
    loaded = store.read_newest(5, RowFormat.of(chess), GameIdentity.of(chess))
    assert (loaded.count, loaded.rows["ply"].tolist()) == (5, [2, 0, 2, 0, 2])
    assert since(RunCounts(), 0, store).rows == 2  # the second file alone
    assert Store(store.folder, "b").reserve("other").name == "0000000002-b.npz"


@pytest.mark.slow
def test_self_play_of_chess_for_lc0(tmp_path: Path) -> None:
    """An independent reader accepts what a search in real games gives."""
    chess = games.make("chess", max_moves=60)
    net = nets.fold(nets.build(nets.spec("b1c8", ("moves_left",)), chess, nnx.Rngs(0)))
    evaluator, weights = evaluators.evaluator(net)
    settings = SelfplaySettings(games=8, full_share=0.5, cheap_simulations=2, opening_moves=3)
    form = lc0_writing.played_form(chess, ("moves_left",))
    how = Selfplay(chess, evaluator, SearchSettings(simulations=6, considered=4), settings, form)
    actor, store = how.start(jax.random.key(0)), Store(tmp_path / "selfplay")
    data = replace(tiny().data, format="lc0")
    with Writer() as writer:
        found = Collector(tmp_path, store, chess, RowFormat.of(chess, ("moves_left",)), writer, data, "net", session=3)
        for _ in range(6):
            actor, done = how.play(weights, actor, np.int32(48), np.uint32(SESSION))
            found.add(on_host(done), 0.0)
        found.flush()
    records = [record for item in store.chunks() for record in lc0_checker.check(item.path)]
    learned = sum(not record.flags & 64 for record in records)
    assert learned == found.written_rows
    assert 0.3 < learned / len(records) < 0.7
    assert len(records) > 500
    assert all(record.floats["root_m"] == record.floats["orig_m"] > 0 for record in records)
    assert len({record.floats["best_q"] for record in records}) > 100


@pytest.mark.slow
def test_every_row_for_katago_follows_from_its_game(tmp_path: Path) -> None:
    game = games.make("go", size=4, komi=3.5, max_moves=30, observation="katago")
    searching = SearchSettings(simulations=VISITS[0], considered=4, score_weight=0.3)
    settings = SelfplaySettings(
        games=16, full_share=0.6, cheap_simulations=VISITS[1], cheap_weight=0.5, opening_moves=3, komi_spread=2.0
    )
    form = katago_writing.played_form(game, scored=True)
    said = evaluate(game.num_actions)

    def evaluate_points(parameters: Any, observation: Observation) -> Evaluation:
        found = said(parameters, observation)
        return found._replace(score=jnp.stack([5 * found.value, 1 + found.value**2], -1))

    how = Selfplay(game, evaluate_points, searching, settings, form)
    actor, played = how.start(jax.random.key(0)), []
    for _ in range(4):
        actor, done = how.play(EVALUATOR, actor, np.int32(48), np.uint32(SESSION))
        played.append(on_host(done))
    data = tiny("data.chunk_rows=200").data
    store = Store(tmp_path / "selfplay")
    with Writer() as writer:
        found = Collector(tmp_path, store, game, form, writer, replace(data, format="katago"), "net", 3, (), VISITS)
        for each in played:
            found.add(each, 0.0)
        found.flush()
    assert found.chunk == Store(store.folder).last() >= 0, "a checkpoint knows what it counts"
    known = {int(n): (each, place) for each in played for place, n in enumerate(each.number[:, 1])}
    rows = {
        (int(n), int(ply)): {name: values[place] for name, values in each.rows.items()}
        for each in played
        for place, (n, ply) in enumerate(zip(each.rows["game"][:, 1], each.rows["ply"], strict=True))
    }
    courses: dict[int, dict[int, KnownTurn]] = {}
    for number, (each, place) in known.items():
        length = int(each.length[place])
        rules = {"size": 4, "komi": float(each.extra["komi"][place]), "max_moves": 30}
        values = [float(value) for value in each.value[place, :length]]
        actions = [int(action) for action in each.action[place, :length]]
        scores = [float(score) for score in each.score[place, :length]]
        courses[number] = turns(KnownGame(rules, actions, values, int(each.opening[place]), scores))
    seen = 0
    for item in store.chunks():
        with np.load(item.path) as file:
            arrays = {name: file[name] for name in file}
        keys = [
            (int(n), int(t))
            for n, t in zip(games_of(arrays["globalTargetsNC"])[:, 1], arrays["globalTargetsNC"][:, 51], strict=True)
        ]
        mine = {name: np.stack([rows[key][name] for key in keys]) for name in form.fields}
        check_turns(arrays, mine, [courses[number][turn] for number, turn in keys], side=4)
        seen += len(keys)
    assert seen == len(rows) > 500
    assert len(known) > 20
