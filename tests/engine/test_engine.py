import itertools
import threading
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import games, search
from tengen.config.settings.match import EngineSettings
from tengen.engine import engine as engine_module
from tengen.engine import programs
from tengen.engine.engine import Engine, SearchReport
from tengen.engine.position import IllegalMove
from tengen.errors import TengenError
from tengen.games.tic_tac_toe import TicTacToe
from tengen.run.networks import FoundNetwork
from tests.helpers.networks import QUICK, untrained


@pytest.fixture(scope="module")
def noughts_engine(noughts: FoundNetwork) -> Engine:
    return Engine(noughts, settings=QUICK)


@pytest.fixture
def engine(noughts_engine: Engine) -> Engine:
    noughts_engine.reset()
    return noughts_engine


def _consistent(engine: Engine, thought: SearchReport) -> None:
    assert thought.visits == 1 + sum(c.visits for c in thought.candidates)
    rest = [c.visits for c in thought.candidates[1:]]
    assert rest == sorted(rest, reverse=True)
    most = max(c.visits for c in thought.candidates)
    known = [c for c in thought.candidates if c.visits >= 0.1 * most]
    bounds = [c.value - engine.settings.lower_bound / c.visits**0.5 for c in known]
    assert known[0] is thought.candidates[0]
    assert bounds[0] == max(bounds)
    legal = engine.legal()
    assert all(legal[c.action] and c.line[0] == c.action and -1 <= c.value <= 1 for c in thought.candidates)


def test_visits_are_those_that_were_asked_for_and_earlier_ones_count(engine: Engine) -> None:
    for visits in (1, 2, 37, 60):
        thought = engine.think(visits=visits)
        assert thought.visits == visits
        assert thought.value == pytest.approx(
            float(np.asarray(search.summarise(engine.tree, jax.random.key(0)).value)[0])
        )
    _consistent(engine, thought)
    assert engine.think(visits=10).visits == 60
    assert engine.think(visits=10).evaluations == 0


def test_one_visit_is_the_bare_policy(engine: Engine) -> None:
    assert engine.think(visits=1).action == int(np.argmax(engine.look().policy))


def test_wins_and_stops_wins(engine: Engine) -> None:
    engine.reset(actions=(0, 3, 1, 4))  # X wins at 2
    thought = engine.think(visits=100)
    assert thought.action == 2
    assert thought.candidates[0].value == 1
    assert thought.candidates[0].line == (2,)
    engine.reset(actions=(0, 4, 1))  # O must stop it
    assert engine.think(visits=200).action == 2


def test_a_move_keeps_what_is_known_about_it(engine: Engine) -> None:
    thought = engine.think(visits=60)
    best = thought.candidates[0]
    engine.play(best.action)
    assert engine.actions == (best.action,)
    kept = engine.think(visits=1)
    assert kept.visits == best.visits
    assert kept.evaluations == 0
    assert kept.value == pytest.approx(-best.value, abs=1e-5)
    assert kept.candidates[0].action == best.line[1]


def test_undo_and_illegal_moves(engine: Engine) -> None:
    start = game_text(engine)
    engine.play(4)
    with pytest.raises(IllegalMove, match="action 4"):
        engine.play(4)
    with pytest.raises(IllegalMove):
        engine.play(-1)
    with pytest.raises(IllegalMove):
        engine.reset(actions=(1, 1))
    assert engine.actions == (4,)
    assert engine.undo()
    assert not engine.undo()
    assert game_text(engine) == start
    assert engine.think(visits=5).visits == 5


def game_text(engine: Engine) -> str:
    return engine.game.render(engine.state)


def test_a_finished_game_has_a_value_and_no_move(engine: Engine) -> None:
    engine.reset(actions=(0, 3, 1, 4, 2))
    thought = engine.think()
    assert thought.action is None
    assert thought.value == -1  # for O, who would move
    with pytest.raises(IllegalMove, match="over"):
        engine.play(8)


def test_stops_when_it_is_told_to(engine: Engine) -> None:
    stop, seen = threading.Event(), []
    timer = threading.Timer(0.2, stop.set)
    timer.start()
    thought = engine.think(visits=10**8, stop=stop, each=seen.append, every=0.01)
    assert stop.is_set()
    assert [t.visits for t in seen] == sorted(t.visits for t in seen)
    assert seen
    assert seen[-1].visits <= thought.visits
    # One that is set already still gets an answer.
    engine.reset()
    assert engine.think(stop=stop).action is not None


def test_blocks_of_any_length_give_the_same_search(engine: Engine) -> None:
    found = []
    for block in (2, 6, 128):
        engine.reset()
        engine._block = block
        engine.think(visits=1)
        engine._block = block
        found.append([(c.action, c.visits, c.line) for c in engine.think(visits=301).candidates])
    assert found[0] == found[1] == found[2]


def test_seconds_end_it(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count()
    monkeypatch.setattr(engine_module, "time", SimpleNamespace(perf_counter=lambda: next(clock) / 100))
    found = engine.think(seconds=0.1)
    assert found.visits > 1
    assert 0.1 <= found.seconds < 0.2


@pytest.mark.slow
def test_a_full_tree_forgets_and_goes_on(noughts: FoundNetwork) -> None:
    engine = Engine(noughts, settings=EngineSettings(leaves=2, slots=100))  # the whole tree has 231 positions
    engine.reset(actions=(0, 3, 1))
    thought = engine.think(visits=400)
    _check_tree(engine.tree)
    assert thought.visits == 400
    assert thought.evaluations > 100
    assert thought.nodes <= 100
    assert thought.action == 2  # the only move that does not lose at once
    engine.play(2)
    assert engine.think(visits=500).visits == 500
    _check_tree(engine.tree)


def _check_tree(tree: search.Tree) -> None:
    """Every node in use but the root hangs below its parent, and has no more visits than it."""
    one = jax.tree.map(lambda leaf: np.asarray(leaf[0]), tree)
    used = set(one.free[: int(one.used)].tolist())
    assert sorted(one.free.tolist()) == list(range(len(one.free)))
    for node in used - {int(one.root)}:
        parent = int(one.parent[node])
        assert parent in used
        assert node in one.child[parent]
        assert 0 < one.visits[node] <= one.visits[parent]
    for node in used:
        children = one.child[node][one.child[node] >= 0]
        assert set(children.tolist()) <= used


@pytest.mark.slow
def test_large_trees_are_numbered_in_more_bits(noughts: FoundNetwork) -> None:
    small, large = (Engine(noughts, settings=EngineSettings(leaves=3, slots=slots)) for slots in (300, 40000))
    for engine in (small, large):
        engine.think(visits=150)
        engine.play(4)
        engine.think(visits=100)
    assert search.dump.as_dict(large.tree, depth=3) == search.dump.as_dict(small.tree, depth=3)
    assert large.tree.child.dtype == np.int32


def test_look_is_from_the_movers_side(go5: FoundNetwork) -> None:
    engine = Engine(go5, settings=QUICK)
    look = engine.look()
    assert look.player == 0
    assert look.policy.sum() == pytest.approx(1)
    assert look.win + look.draw + look.loss == pytest.approx(1)
    assert look.ownership is not None
    assert look.ownership.shape == (5, 5)
    assert np.abs(look.ownership).max() <= 1
    assert look.score is not None
    assert look.score_spread is not None
    assert look.score_spread > 0
    assert look.moves_left is None
    engine.play(12)
    after = engine.look()
    assert after.player == 1
    assert after.policy[12] == 0


@pytest.mark.slow
def test_other_boards_if_the_network_fits(go5: FoundNetwork) -> None:
    engine = Engine(go5, games.make("go", size=7, komi=3.5), QUICK)
    assert engine.think(visits=8).visits == 8


def test_nothing_is_bounded_for_one_game(noughts: FoundNetwork) -> None:
    exact = games.make("tic_tac_toe")
    game = TicTacToe(exact.options)
    game.exact = exact  # as of games whose observation is cheaper for thousands of games
    engine = Engine(noughts, game, QUICK)
    assert engine.game is exact
    assert engine.game is exact


def test_networks_that_do_not_fit_are_named(tmp_path: Path) -> None:
    fours = untrained(tmp_path / "fours", "connect_four")
    points = untrained(tmp_path / "points", "hironaka", "mlp1x8")
    with pytest.raises(TengenError, match="expected F32"):
        Engine(points, games.make("hironaka", dimension=4), QUICK)
    with pytest.raises(TengenError, match="expected one for go"):
        Engine(fours, games.make("go"), QUICK)


def test_leaves_come_from_device_and_visits(noughts: FoundNetwork) -> None:
    assert Engine(noughts, settings=EngineSettings(visits=8, slots=64)).leaves == 1
    assert Engine(noughts, settings=EngineSettings(visits=800, slots=64)).leaves >= 4
    with pytest.raises(TengenError, match="leaves"):
        Engine(noughts, settings=EngineSettings(leaves=0))


def test_a_move_copies_no_table(engine: Engine) -> None:
    """Tables have hundreds of megabytes: a copy of each for every move would take most of a second."""
    moved = programs._read_move(engine.tree, jnp.int32(4))
    text = programs._move.lower(engine.tree, moved).compile().as_text() or ""
    _, slots, actions = engine.tree.child.shape
    assert f"[1,{slots},{actions}]" in text
    assert not [line for line in text.splitlines() if f"[1,{slots},{actions}]" in line and " copy(" in line]
