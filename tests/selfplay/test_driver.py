"""Games on this machine without learning: random play is even, and games have numbers of their own."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tengen.nets import saving
from tengen.selfplay.collector import on_host
from tengen.selfplay.driver import NoFiniteNumbers, PlayRounds, SelfplayDriver
from tests.helpers.tiny_runs import tiny


@pytest.fixture(scope="module")
def playing() -> SelfplayDriver:
    return SelfplayDriver(tiny())


def numbers(played: list[Any]) -> list[tuple[int, int]]:
    """Of all games that have ended."""
    return [(int(a), int(b)) for each in played for a, b in on_host(each.finished).number]


@pytest.mark.slow
def test_without_weights_all_moves_are_equally_good(playing: SelfplayDriver) -> None:
    game = playing.game
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 3))
    states = jax.vmap(game.step)(states, np.array([0, 4, 8]))
    said = playing.evaluate(playing.no_weights(), jax.vmap(game.look)(states).observation)
    logits = np.asarray(said.logits)
    np.testing.assert_array_equal(logits, np.broadcast_to(logits[:, :1], logits.shape))
    np.testing.assert_array_equal(np.asarray(said.value), 0)


def test_weights_are_those_of_the_file(playing: SelfplayDriver, tmp_path: Path) -> None:
    from tests.helpers.pipeline_data import network

    net = saving.load(network(tmp_path, 5), playing.game, dtype="float32")
    game = playing.game
    seen = jax.vmap(game.look)(jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))).observation
    said = playing.evaluate(playing.weights(net), seen)
    outputs = net(seen.planes, seen.scalars)
    np.testing.assert_allclose(said.logits, outputs.policy, atol=1e-4)
    win = jax.nn.softmax(outputs.value)
    np.testing.assert_allclose(said.value, win[:, 0] - win[:, 2], atol=1e-4)
    assert np.ptp(np.asarray(said.logits)) > 0


@pytest.mark.slow
def test_numbers_go_on_when_games_are_dropped(playing: SelfplayDriver) -> None:
    rounds = PlayRounds(playing.lanes, 7, jax.random.key(0))
    weights = playing.no_weights()
    seen: list[tuple[int, int]] = []
    for call in range(9):
        seen += numbers(rounds.play(weights))
        if call in (2, 5):
            rounds.forget()
            rounds.forget()  # with nothing to drop
    assert len(seen) == len(set(seen)) > 20
    assert {session for session, _ in seen} == {7}


def test_which_games_began_before(playing: SelfplayDriver) -> None:
    rounds = PlayRounds(playing.lanes, 7, jax.random.key(0))
    assert rounds.marks() == ()
    assert not rounds.compiled
    assert rounds.older(()) == 0
    weights = playing.no_weights()
    rounds.play(weights)
    assert rounds.compiled
    marks = rounds.marks()
    assert rounds.older(marks) == 8
    calls = 0
    while left := rounds.older(marks):
        rounds.play(weights)
        calls += 1
        assert rounds.older(marks) <= left
        assert calls < 100
    assert rounds.older(rounds.marks()) == 8
    assert rounds.evaluations > 0


def test_what_is_done_meanwhile(playing: SelfplayDriver) -> None:
    rounds = PlayRounds(playing.lanes, 7, jax.random.key(0))
    done: list[str] = []
    played = rounds.play(playing.no_weights(), lambda: done.append("this"))
    assert done == ["this"]
    assert [each.game.name for each in played] == [playing.game.name]
    assert played[0].evaluations > 0


def test_a_network_that_gives_no_numbers_is_told_of_and_its_games_are_dropped(playing: SelfplayDriver) -> None:
    rounds = PlayRounds(playing.lanes, 7, jax.random.key(0))
    weights = playing.no_weights()
    rounds.play(weights)
    bad = jax.tree.map(lambda leaf: leaf * np.nan, weights)

    def play_on() -> None:
        for _ in range(5):  # a call may be too short for a search to end
            rounds.play(bad)

    with pytest.raises(NoFiniteNumbers, match=r"numbers that are not finite: [\d,]+ searches found no move or value"):
        play_on()
    assert rounds.board() == ""
    rounds.play(weights)  # nothing of it is left


def test_games_go_on_with_other_settings(playing: SelfplayDriver) -> None:
    rounds = PlayRounds(playing.lanes, 7, jax.random.key(0))
    weights = playing.no_weights()
    seen = numbers(rounds.play(weights))
    assert rounds._actors is not None
    before = rounds._actors[0]
    plies, running = np.asarray(before.history.ply), np.asarray(before.number)
    states = jax.tree.map(np.asarray, before.tree.states(before.tree.root))
    rounds.change(SelfplayDriver(tiny("search.simulations=6", "selfplay.cheap_simulations=3")).lanes)
    assert rounds._actors is not None
    actor = rounds._actors[0]
    assert not rounds.compiled
    np.testing.assert_array_equal(actor.history.ply, plies)
    np.testing.assert_array_equal(actor.number, running)
    jax.tree.map(np.testing.assert_array_equal, actor.tree.states(actor.tree.root), states)
    assert set(np.asarray(actor.tree.budget).tolist()) <= {5, 2}, "with the root's own evaluation one fewer"
    rounds.change(playing.lanes)  # which are compiled already
    for _ in range(4):
        seen += numbers(rounds.play(weights))
    assert len(seen) == len(set(seen)) > 20
    assert {(7, int(number)) for number in running} <= set(seen)


def test_fewer_simulations_need_no_other_program(playing: SelfplayDriver) -> None:
    rounds = PlayRounds(playing.lanes, 7, jax.random.key(0))
    weights, most = playing.no_weights(), playing.config.search.simulations
    rounds.play(weights)
    compiled = playing.selfplay.play._cache_size()
    rounds.play(weights, budgets=(2, 2))
    rounds.play(weights, budgets=(2, 2))
    assert rounds._actors is not None
    assert set(np.asarray(rounds._actors[0].tree.budget).tolist()) <= {1, 2}
    rounds.play(weights, budgets=(most, 2))
    rounds.play(weights)
    assert most in np.asarray(rounds._actors[0].tree.budget)
    assert playing.selfplay.play._cache_size() == compiled
