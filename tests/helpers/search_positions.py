"""Positions for the tests of the search, and evaluators that know nothing about them."""

from copy import copy
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tengen.games.core import Game, NoOptions, Observation
from tengen.games.targets import SCORE
from tengen.games.tic_tac_toe import TicTacToe, TicTacToeState
from tengen.nets.outputs import Evaluation
from tests.helpers.game_recording import jit


class DoubleMove(TicTacToe):
    """Tic-tac-toe where a turn is two moves (the first is one): signs follow the player, not the depth.

    The winner gets a point for every empty cell, and one more.
    """

    name = "double_move"
    extra_targets = (SCORE,)

    def final_targets(self, state: TicTacToeState) -> dict[str, Array]:
        empty = 9 - lax.population_count(state.stones).sum()
        return {"score": self.returns(state)[0] * (1 + empty).astype(jnp.float32)}

    def _play(self, state: TicTacToeState, action: Array) -> TicTacToeState:
        placed = super()._play(state, action)
        count = lax.population_count(placed.stones).sum()
        return placed._replace(turn=((count + 1) // 2 % 2).astype(jnp.int8))


class FewLegal(DoubleMove):
    """The same with 75 actions, of which every eighth is a move: trees keep lists of the legal ones."""

    name = "few_legal"
    num_actions = 75
    most_legal_moves = 9

    def legal_actions(self, state: TicTacToeState) -> Array:
        return jnp.zeros(self.num_actions, bool).at[3:75:8].set(super().legal_actions(state))

    def _play(self, state: TicTacToeState, action: Array) -> TicTacToeState:
        return super()._play(state, action // 8)


class ManyLegal(DoubleMove):
    """The same with 300 actions, and ten moves for each empty cell: lists are longer than two warps."""

    name = "many_legal"
    num_actions = 300
    most_legal_moves = 90

    def legal_actions(self, state: TicTacToeState) -> Array:
        return jnp.zeros(self.num_actions, bool).at[1:271:3].set(jnp.tile(super().legal_actions(state), 10))

    def _play(self, state: TicTacToeState, action: Array) -> TicTacToeState:
        return super()._play(state, action // 3 % 9)


class Unlisted(ManyLegal):
    """The same without lists: several warps look at the moves of a node."""

    name = "unlisted"
    most_legal_moves = None


DOUBLE_MOVE, FEW_LEGAL, MANY_LEGAL, UNLISTED = (
    kind(NoOptions()) for kind in (DoubleMove, FewLegal, ManyLegal, Unlisted)
)


@cache
def _weights(size: int) -> np.ndarray:
    return np.random.default_rng(size).integers(2**32, size=size, dtype=np.uint32)


def hashed(observation: Observation, num_actions: int, sharpness: Any, weight: Any, xp: Any = np) -> Evaluation:
    """Nonsense, but always the same, by a hash of the observations [B, ...]; 0 and 0 give uniform priors and draws.

    Logits are in [-sharpness, sharpness], values in [-weight, weight], scores in [-8, 8] with spreads up to 4. NumPy
    (xp=np) and JAX (xp=jnp) agree bit by bit.
    """
    planes = observation.planes.reshape(len(observation.planes), -1).astype(xp.uint32)
    scalars = xp.round(observation.scalars * 256).astype(xp.int32).astype(xp.uint32)
    facts = xp.concatenate([planes, scalars], 1)
    seed = (facts * _weights(facts.shape[1])).sum(1, dtype=xp.uint32)
    x = seed[:, None] + np.arange(1, num_actions + 4, dtype=np.uint32) * np.uint32(0x9E3779B9)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    x = x ^ (x >> np.uint32(16))
    numbers = (x >> np.uint32(8)).astype(xp.float32) * np.float32(2**-23) - np.float32(1)
    score = xp.stack([8 * numbers[:, -2], 2 * numbers[:, -1] + 2], -1).astype(xp.float32)
    return Evaluation(numbers[:, :-3] * xp.float32(sharpness), numbers[:, -3] * xp.float32(weight), score)


@cache
def _moved(game: Game) -> Any:
    def moved(states: Any, actions: Any, stay: Any) -> Any:
        states, look = game.step_and_look(states, actions, stay)
        return states, look, jax.vmap(game.to_play)(states)

    return jit(moved)


@cache
def _init(game: Game) -> Any:
    return jit(game.init)


class Played:
    """One game of `tengen.games` as the oracle wants it. No attribute is changed in place."""

    def __init__(self, game: Game, state: Any) -> None:
        self.game = game
        self._set(state, 0, True)

    def _set(self, state: Any, action: int, stay: bool) -> None:
        one = jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
        moved = _moved(self.game)(one, np.array([action], np.int32), np.array([stay]))
        self.state, self.look, to_play = jax.tree.map(lambda leaf: np.asarray(leaf)[0], moved)
        self.to_play, self.over = int(to_play), bool(self.look.over)

    def legal_actions(self) -> list[bool]:
        return self.look.legal.tolist()

    def play(self, action: int) -> None:
        self._set(self.state, action, False)

    def returns(self) -> tuple[float, float]:
        return float(self.look.returns[0]), float(self.look.returns[1])

    def points(self) -> float:
        return 0.0 if self.look.score is None else float(self.look.score)

    def evaluate(self, sharpness: float, weight: float) -> tuple[np.ndarray, float, tuple[float, float]]:
        """What `hashed` says about the position."""
        assert not self.over, "a finished game is never evaluated"
        seen = Observation(*(part[None] for part in self.look.observation))
        logits, value, score = hashed(seen, self.game.num_actions, sharpness, weight)
        assert score is not None
        return np.asarray(logits[0]), float(value[0]), (float(score[0, 0]), float(score[0, 1]))


def random_game(game: Game, seed: int) -> list[Played]:
    """All positions of a random game."""
    rng = np.random.default_rng(seed)
    positions = [Played(game, _init(game)(jax.random.key(seed)))]
    while not positions[-1].over:
        positions.append(copy(positions[-1]))
        positions[-1].play(int(rng.choice(np.flatnonzero(positions[-1].look.legal))))
    return positions


def after(game: Game, actions: list[int]) -> Played:
    """The position after these moves."""
    position = Played(game, _init(game)(jax.random.key(0)))
    for action in actions:
        position.play(action)
    return position


def stacked(positions: list[Played]) -> Any:
    """[B, ...] their states."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *(position.state for position in positions))


@cache
def roots(game: Game, batch: int, seed: int = 0) -> Any:
    """[B, ...] a new game, a finished one, one with a single legal move (if a random game has one), others between."""
    rng = np.random.default_rng(seed)
    games = [random_game(game, seed * batch + number) for number in range(batch)]
    forced = [position for positions in games for position in positions if position.look.legal.sum() == 1]
    between = [positions[rng.integers(len(positions) - 1)] for positions in games]
    return stacked([games[0][0], games[1][-1], *forced[:1], *between][:batch])
