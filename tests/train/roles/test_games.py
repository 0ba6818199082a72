"""Games in lockstep, against games that are played one by one in Python."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import games
from tengen.games.core import Game
from tengen.games.players import First, Random
from tengen.train.roles.games import FusedGame, Returns, Transition, finished
from train.toys import Chain, Turns


def _length(role: str, state: Any, next_state: Any, done: Any) -> Any:
    """A reward for every move of anybody, so that sums and discounts show."""
    return next_state.place * 0.5 + state.moves + (role == "host") + 10.0 * done


def _one_by_one(game: Game, reward: Any, role: str, moves: int, n_step: int, gamma: float) -> list[tuple[Any, ...]]:
    """(observation, action, reward, done, next observation) of a role, when both play the first legal action."""
    me, state, singles = game.roles.index(role), game.init(jax.random.key(0)), []
    before: list[Any] = []
    while len(singles) < moves + n_step:
        if bool(game.is_over(state)):
            state, before = game.init(jax.random.key(0)), []
            continue
        action = int(np.flatnonzero(game.legal_actions(state))[0])
        after = game.step(state, jnp.int32(action))
        worth = float(reward(role, state, after, game.is_over(after)))
        if int(game.to_play(state)) == me:
            before = [state, action, worth]
        elif before:
            before[2] += worth
        state = after
        if before and (bool(game.is_over(state)) or int(game.to_play(state)) == me):
            singles.append((*before, bool(game.is_over(state)), state))
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


@pytest.mark.parametrize(("role", "n_step"), [("host", 1), ("agent", 1), ("host", 3), ("agent", 3)])
def test_samples_are_those_of_single_games(role: str, n_step: int) -> None:
    game = Turns()
    fused = FusedGame(game, First(game), First(game), _length)
    params = {"host": (), "agent": ()}
    lane = fused.start(role, 2, n_step, params, jax.random.key(1), 0.0, 0.0)
    parts = []
    for number in range(2):  # what spans two calls counts as well
        lane, samples, _ = fused.roll_out(role, 6, lane, params, jax.random.key(number), 0.0, 0.0, 0.9)
        parts.append(jax.tree.map(lambda leaf: leaf.reshape(6, 2, *leaf.shape[1:]), samples))
    found: Transition = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    for column in range(2):
        for row, expected in enumerate(_one_by_one(game, _length, role, 12, n_step, 0.9)):
            state, action, reward, done, after = expected
            assert found.actions[row, column] == action
            assert found.rewards[row, column] == pytest.approx(reward)
            assert found.dones[row, column] == done
            for seen, there in ((found.observations, state), (found.next_observations, after)):
                np.testing.assert_array_equal(seen["scalars"][row, column], game.observe(there).scalars)
                np.testing.assert_array_equal(seen["legal"][row, column], game.legal_actions(there))


def test_exploration_is_among_legal_actions_and_even() -> None:
    game = Turns()
    fused = FusedGame(game, First(game), First(game), Returns(game))
    params = {"host": (), "agent": ()}
    lane = fused.start("host", 500, 1, params, jax.random.key(0), 1.0, 1.0)
    _, samples, ended = fused.roll_out("host", 6, lane, params, jax.random.key(1), 1.0, 1.0, 1.0)
    legal = np.asarray(samples.observations["legal"])
    assert legal[np.arange(len(legal)), samples.actions].all()
    at_start = np.asarray(samples.observations["scalars"][:, 1]) == 0
    counts = np.bincount(np.asarray(samples.actions)[at_start], minlength=3)
    assert counts[0] == 0
    assert counts[1] / counts.sum() == pytest.approx(0.5, abs=0.05)
    assert int(ended) == int(samples.dones.sum()) > 0
    _, samples, _ = fused.roll_out("host", 6, lane, params, jax.random.key(1), 0.3, 0.0, 1.0)
    first = np.asarray(First(game)((), jax.random.key(0), _states(samples), None))
    assert np.mean(first != samples.actions) == pytest.approx(0.15, abs=0.03)  # half of what is tried is the same


def _states(samples: Transition) -> Any:
    from train.toys import ToyState

    numbers = samples.observations["scalars"].astype(jnp.int32)
    return ToyState(numbers[:, 0], numbers[:, 1])


def test_a_game_for_one() -> None:
    game = Chain()
    fused = FusedGame(game, Random(game), None, Returns(game))
    lane = fused.start("host", 200, 1, {"host": ()}, jax.random.key(0), 0.0, 0.0)
    _, samples, ended = fused.roll_out("host", 20, lane, {"host": ()}, jax.random.key(1), 0.0, 0.0, 1.0)
    place = np.argmax(samples.observations["scalars"], 1)
    after = np.argmax(samples.next_observations["scalars"], 1)
    np.testing.assert_array_equal(after - place, np.where(np.asarray(samples.actions) == 1, 1, -1))
    assert not ((place == 3) & (np.asarray(samples.actions) != 1)).any()
    np.testing.assert_allclose(samples.rewards, np.select([after == 0, after == 6], [0.3, 1.0], 0.0))
    assert int(ended) == np.isin(after, (0, 6)).sum()


def test_whole_games() -> None:
    game = Turns()
    outcome = FusedGame(game, First(game), First(game, last=True), Returns(game)).play(
        3, {"host": (), "agent": ()}, jax.random.key(0)
    )
    state, length = game.init(jax.random.key(0)), 0
    while not bool(game.is_over(state)):
        legal = np.flatnonzero(game.legal_actions(state))
        state = game.step(state, jnp.int32(legal[-1] if int(game.to_play(state)) else legal[0]))
        length += 1
    np.testing.assert_array_equal(outcome.length, length)
    np.testing.assert_allclose(outcome.returns, np.tile(game.returns(state), (3, 1)))


def test_what_an_end_is_worth_in_hironakas_game() -> None:
    game: Any = games.make("hironaka", dimension=2, max_points=2, max_moves=4)
    running = game.position(jnp.array([[0.0, 5.0], [5.0, 0.0]]))
    left = running._replace(points=jnp.array([[0.0, 5.0], [-1.0, -1.0]]))
    late = running._replace(moves=jnp.int16(4))
    assert [float(finished(role, running, left, True)) for role in ("host", "agent")] == [1.0, -1.0]
    assert float(finished("host", running, late, True)) == 0.0
    assert float(Returns(game)("host", running, late, game.is_over(late))) == -1.0
    assert float(Returns(game)("agent", running, running, jnp.bool_(False))) == 0.0
