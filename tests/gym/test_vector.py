"""Environments of gymnasium: the rules of the game, an opponent's answers, new games, and gymnasium's own checks."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from tengen import games  # noqa: E402
from tengen.errors import OptionError, TengenError  # noqa: E402
from tengen.games.players import First, Player  # noqa: E402
from tengen.gym import GameEnv, GameVectorEnv  # noqa: E402

GAME = games.make("tic_tac_toe")
FIRST = Player("first", First(GAME))  # always the first free square


def lowest(observation: Any, mask: np.ndarray) -> np.ndarray:
    """The same as a function of the user's."""
    assert observation.shape[1:] == (3, 3, 3)
    return mask.argmax(1)


def vector(mode: str = "NextStep", opponent: Any = FIRST, **more: Any) -> GameVectorEnv:
    return GameVectorEnv(GAME, 2, opponent, autoreset_mode=mode, **more)


def test_gymnasiums_own_checker() -> None:
    env = gymnasium.make("tengen.gym:tengen/Game-v0", game="tic_tac_toe", render_mode="ansi")
    check_env(env.unwrapped)
    env.reset(seed=1)
    assert env.render().splitlines()[0].split() == ["a", "b", "c"]
    with pytest.raises(OptionError, match="render_mode: expected ansi or None, got 'human'"):
        GameEnv(GAME, render_mode="human")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hironaka", "go", "connect_four"])
def test_gymnasiums_own_checker_with_other_games(name: str) -> None:
    check_env(gymnasium.make("tengen.gym:tengen/Game-v0", game=name, player=None).unwrapped)


@pytest.mark.parametrize("opponent", [FIRST, lowest], ids=["compiled", "function"])
def test_a_game_to_its_end(opponent: Any) -> None:
    """Against an oracle that plays both sides one move at a time; in the second game the learner loses."""
    env = vector(opponent=opponent)
    observation, info = env.reset(seed=3)
    states = [GAME.init(jax.random.key(0))] * 2
    for moves in ((8, 8), (7, 5), (6, 7)):
        np.testing.assert_array_equal(info["action_mask"], [GAME.legal_actions(state) for state in states])
        np.testing.assert_array_equal(observation, [GAME.observe(state).planes for state in states])
        observation, reward, terminated, truncated, info = env.step(np.array(moves))
        for place, move in enumerate(moves):
            state = GAME.step(states[place], jnp.int32(move))
            if not GAME.is_over(state):
                state = GAME.step(state, jnp.argmax(GAME.legal_actions(state)).astype(jnp.int32))
            states[place] = state
        np.testing.assert_array_equal(reward, [GAME.returns(state)[0] for state in states])
        np.testing.assert_array_equal(terminated, [GAME.is_over(state) for state in states])
        assert not truncated.any()
    assert reward.tolist() == [1, -1]
    # The next step begins new games, whatever the actions.
    observation, reward, terminated, _, info = env.step(np.array([8, 8]))
    assert observation[..., 1:].sum() == reward.sum() == terminated.sum() == 0
    assert info["action_mask"].all()


def test_new_games_in_the_same_step() -> None:
    env = vector("SameStep")
    env.reset(seed=0)
    for moves in ((8, 8), (7, 5), (6, 2)):
        observation, reward, terminated, _, info = env.step(np.array(moves))
    assert (reward.tolist(), terminated.tolist()) == ([1, 1], [True, True])
    assert observation[..., 1:].sum() == 0
    assert info["action_mask"].all()
    assert info["_final_obs"].all()
    assert info["final_obs"][..., 1:].sum() == 10
    assert not info["final_info"]["action_mask"].any()


def test_new_games_when_they_are_asked_for() -> None:
    env = vector("Disabled")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.array([0, 0]))
    env.reset(seed=0)
    for moves in ((8, 8), (7, 2), (6, 7)):
        _, _, terminated, _, _ = env.step(np.array(moves))
    assert terminated.tolist() == [True, False]
    with pytest.raises(gymnasium.error.ResetNeeded, match="a game is over"):
        env.step(np.array([0, 4]))
    observation, info = env.reset(options={"reset_mask": terminated})
    assert observation[..., 1:].sum((1, 2, 3)).tolist() == [0, 6]
    np.testing.assert_array_equal(env.action_masks(), info["action_mask"])
    env.step(np.array([0, 4]))
    with pytest.raises(OptionError, match=r"reset_mask: expected bool\[2\], got int64\[2\]"):
        env.reset(options={"reset_mask": np.array([1, 0])})


def test_an_illegal_move_loses() -> None:
    env = vector()
    env.reset(seed=0)
    env.step(np.array([8, 8]))
    _, reward, terminated, _, info = env.step(np.array([8, 99]))
    assert (reward.tolist(), terminated.tolist(), info["illegal"].tolist()) == ([-1, -1], [True, True], [True, True])
    for wrong in (np.array([1.5, 2]), np.array([1])):
        with pytest.raises(OptionError, match=r"actions: expected whole numbers of the shape \[2\], got"):
            env.step(wrong)


def test_the_second_player_and_either() -> None:
    env = vector(player=1)
    observation, info = env.reset(seed=0)
    assert observation[..., 2].sum((1, 2)).tolist() == [1, 1], "the opponent has moved"
    assert info["player"].tolist() == [1, 1]
    either = GameVectorEnv(GAME, 64, FIRST, player=None)
    observation, info = either.reset(seed=0)
    np.testing.assert_array_equal(observation[..., 2].sum((1, 2)), info["player"])
    assert 10 < info["player"].sum() < 54


def test_a_seed_gives_the_same_games() -> None:
    env = vector(opponent="random")

    def played(seed: Any) -> list[Any]:
        found = [env.reset(seed=seed)[0]]
        for move in range(5):
            found.append(env.step(env.action_masks().argmax(1) if move != 2 else np.array([8, 7]))[0])
        return found

    one, same, other = played(5), played(5), played([1, 2])
    assert all((a == b).all() for a, b in zip(one, same, strict=True))
    assert not all((a == b).all() for a, b in zip(one, other, strict=True))
    with pytest.raises(OptionError, match="seed: expected one number or 2 of them, got 3"):
        env.reset(seed=[1, 2, 3])


def test_opponents_that_cannot_play() -> None:
    def illegal(observation: Any, mask: np.ndarray) -> np.ndarray:
        return (~mask).argmax(1)

    def broken(observation: Any, mask: np.ndarray) -> np.ndarray:
        return observation["no"]

    for function, words in (
        (illegal, r"opponent: action 8 is not legal in its position \(.*test_vector.py, line \d+\)"),
        (broken, r"opponent: IndexError: .* \(.*test_vector.py, line \d+, in broken\)"),
        (lambda observation, mask: mask, r"opponent: expected whole numbers of the shape \[2\], got bool\[2, 9\]"),
    ):
        env = vector(opponent=function)
        env.reset(seed=0)
        with pytest.raises(TengenError, match=words):
            env.step(np.array([8, 8]))
    for given, words in (
        ("nobody", "opponent: .*nobody.*; random and mcts:200 are possible too"),
        ("gtp:gnugo", "programs play in `tengen match`"),
        (3, "opponent: expected a name, a path, a Player or a function, got 3"),
    ):
        with pytest.raises(OptionError, match=words):
            vector(opponent=given)
    with pytest.raises(OptionError, match="player: expected 0, 1 or None, got 2"):
        vector(player=2)
    with pytest.raises(OptionError, match="num_envs: expected a whole number of at least 1, got 0"):
        GameVectorEnv(GAME, 0)


@pytest.mark.slow
def test_the_example_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    from tests.helpers import paths

    monkeypatch.syspath_prepend(str(paths.EXAMPLES))
    before, after = importlib.import_module("gym_hironaka").main(100_000)
    assert after > before + 0.3
