"""Games in lockstep, against games that are played one by one in Python."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import games
from tengen.games.players import First, Random
from tengen.roles.games import FusedGame, Returns, Transition, finished
from tests.helpers.toy_trainers import Chain, Turns


def _length(role: str, state: Any, next_state: Any, done: Any) -> Any:
    """A reward for every move of anybody, so that sums and discounts show."""
    return next_state.place * 0.5 + state.moves + (role == "first") + 10.0 * done


class _Slow:
    """`Turns` in plain Python."""

    def __init__(self, place: int = 0, moves: int = 0) -> None:
        self.place, self.moves = place, moves
        self.over = place >= 12
        self.player = Turns.ORDER[moves % 6]
        self.legal = [not self.over and action != place % 3 for action in range(3)]

    def step(self, action: int) -> "_Slow":
        return _Slow(self.place + action + 1, self.moves + 1)


def _one_by_one(role: str, moves: int, n_step: int, gamma: float) -> list[tuple[Any, ...]]:
    """(state, action, reward, done, next state) of a role, when both play the first legal action."""
    me, state, singles = ("first", "second").index(role), _Slow(), []
    before: list[Any] = []
    while len(singles) < moves + n_step:
        if state.over:
            state, before = _Slow(), []
            continue
        action = state.legal.index(True)
        after = state.step(action)
        worth = _length(role, state, after, after.over)
        if state.player == me:
            before = [state, action, worth]
        elif before:
            before[2] += worth
        state = after
        if before and (state.over or state.player == me):
            singles.append((*before, state.over, state))
            before = []
    samples = []
    for begin in range(moves):
        total, number = 0.0, 0
        for number in range(n_step):
            total += gamma**number * singles[begin + number][2]
            if singles[begin + number][3]:
                break
        end = singles[begin + number]
        samples.append((singles[begin][0], singles[begin][1], total, end[3], end[4]))
    return samples


@pytest.mark.parametrize(("role", "n_step"), [("second", 1), pytest.param("first", 3, marks=pytest.mark.slow)])
def test_samples_are_those_of_single_games(role: str, n_step: int) -> None:
    game = Turns()
    fused = FusedGame(game, First(game), First(game), _length)
    params = {"first": (), "second": ()}
    lane = fused.start(role, 2, n_step, params, jax.random.key(1), 0.0, 0.0)
    parts = []
    for number in range(2):  # what spans two calls counts as well
        lane, samples, _ = fused.roll_out(role, 6, lane, params, jax.random.key(number), 0.0, 0.0, 0.9)
        parts.append(jax.tree.map(lambda leaf: leaf.reshape(6, 2, *leaf.shape[1:]), samples))
    found: Transition = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    for column in range(2):
        for row, expected in enumerate(_one_by_one(role, 12, n_step, 0.9)):
            state, action, reward, done, after = expected
            assert found.actions[row, column] == action
            assert found.rewards[row, column] == pytest.approx(reward)
            assert found.dones[row, column] == done
            for seen, there in ((found.observations, state), (found.next_observations, after)):
                assert seen["scalars"][row, column].tolist() == [there.place, there.moves]
                assert seen["legal"][row, column].tolist() == there.legal


@pytest.mark.slow
def test_exploration_is_among_legal_actions_and_even() -> None:
    game = Turns()
    fused = FusedGame(game, First(game), First(game), Returns(game))
    params = {"first": (), "second": ()}
    lane = fused.start("first", 500, 1, params, jax.random.key(0), 1.0, 1.0)
    _, samples, ended = fused.roll_out("first", 6, lane, params, jax.random.key(1), 1.0, 1.0, 1.0)
    legal = np.asarray(samples.observations["legal"])
    assert legal[np.arange(len(legal)), samples.actions].all()
    at_start = np.asarray(samples.observations["scalars"][:, 1]) == 0
    counts = np.bincount(np.asarray(samples.actions)[at_start], minlength=3)
    assert counts[0] == 0
    assert counts[1] / counts.sum() == pytest.approx(0.5, abs=0.05)
    assert int(ended) == int(samples.dones.sum()) > 0
    _, samples, _ = fused.roll_out("first", 6, lane, params, jax.random.key(1), 0.3, 0.0, 1.0)
    first = np.asarray(First(game)((), jax.random.key(0), _states(samples), np.ones(len(samples.actions), bool)))
    assert np.mean(first != samples.actions) == pytest.approx(0.15, abs=0.03)  # half of what is tried is the same


def _states(samples: Transition) -> Any:
    from tests.helpers.toy_trainers import ToyState

    numbers = samples.observations["scalars"].astype(jnp.int32)
    return ToyState(numbers[:, 0], numbers[:, 1])


def test_a_game_for_one() -> None:
    game = Chain()
    fused = FusedGame(game, Random(game), None, Returns(game))
    lane = fused.start("walker", 200, 1, {"walker": ()}, jax.random.key(0), 0.0, 0.0)
    _, samples, ended = fused.roll_out("walker", 20, lane, {"walker": ()}, jax.random.key(1), 0.0, 0.0, 1.0)
    place = np.argmax(samples.observations["scalars"], 1)
    after = np.argmax(samples.next_observations["scalars"], 1)
    np.testing.assert_array_equal(after - place, np.where(np.asarray(samples.actions) == 1, 1, -1))
    assert not ((place == 3) & (np.asarray(samples.actions) != 1)).any()
    np.testing.assert_allclose(samples.rewards, np.select([after == 0, after == 6], [0.3, 1.0], 0.0))
    assert int(ended) == np.isin(after, (0, 6)).sum()


def test_whole_games() -> None:
    game = Turns()
    outcome = FusedGame(game, First(game), First(game, last=True), Returns(game)).play(
        3, {"first": (), "second": ()}, jax.random.key(0)
    )
    state = _Slow()
    while not state.over:
        legal = np.flatnonzero(state.legal)
        state = state.step(int(legal[-1] if state.player else legal[0]))
    host = 1.0 if state.place == 12 else -0.5
    np.testing.assert_array_equal(outcome.length, state.moves)
    np.testing.assert_allclose(outcome.returns, [[host, -host]] * 3)


def test_what_an_end_is_worth_in_hironakas_game() -> None:
    game: Any = games.make("hironaka", dimension=2, max_points=2, max_moves=4)
    running = game.position(jnp.array([[0.0, 5.0], [5.0, 0.0]]))
    left = running._replace(points=jnp.array([[0.0, 5.0], [-1.0, -1.0]]))
    late = running._replace(moves=jnp.int16(4))
    assert [float(finished(role, running, left, jnp.bool_(True))) for role in ("host", "agent")] == [1.0, -1.0]
    assert float(finished("host", running, late, jnp.bool_(True))) == 0.0
    assert float(Returns(game)("host", running, late, game.is_over(late))) == -1.0
    assert float(Returns(game)("agent", running, running, jnp.bool_(False))) == 0.0
