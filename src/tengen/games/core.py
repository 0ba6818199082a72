"""The contract that every game keeps, and the few types that all of them share.

A game is a set of pure functions of ONE state; callers `vmap`. States are pytrees of small arrays and hold neither
observations nor legal masks, because a search keeps one state per tree node.
"""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

State = TypeVar("State")


class Observation(NamedTuple):
    """What the player to move sees. On a board, plane 0 marks the points that are on the board."""

    planes: Array  # Bool[H, W, C]
    scalars: Array  # Float32[S]


class PositionInfo(NamedTuple):
    """What a network and a search need to know about a position."""

    legal: Array  # Bool[A]
    observation: Observation
    over: Array  # Bool[]
    returns: Array  # Float32[2]


@dataclass(frozen=True, eq=False)
class Symmetry:
    """A renaming of the board that leaves the rules unchanged."""

    name: str
    board: Callable[[Array], Array]  # [H, W, ...] -> [H, W, ...], for planes and for targets that lie on the board
    scalars: Callable[[Array], Array]  # Float32[S] -> Float32[S]
    actions: np.ndarray  # Int32[2, A]: actions[player, a] is what that player's action a becomes

    @cached_property
    def inverse(self) -> np.ndarray:
        """Int32[2, A]: the action that becomes a."""
        return np.argsort(self.actions, axis=1).astype(np.int32)

    def observation(self, observation: Observation) -> Observation:
        """The same position seen through the symmetry."""
        return Observation(self.board(observation.planes), self.scalars(observation.scalars))

    def action(self, action: Array, to_play: Array) -> Array:
        """What `action` of player `to_play` becomes."""
        return jnp.asarray(self.actions)[to_play, action]

    def policy(self, policy: Array, to_play: Array) -> Array:
        """[A] any number per action (mask, probabilities, logits), moved with the actions."""
        return policy[jnp.asarray(self.inverse)[to_play]]


@dataclass(frozen=True)
class NoOptions:
    """For games whose rules leave nothing to choose."""


class Game(abc.ABC, Generic[State]):
    """The rules of one game under one set of options.

    Players are 0 (moves first) and 1. An action outside the legal mask gives an unspecified state: check with
    `legal_actions`, or go through `parse_action`, which refuses illegal moves.
    """

    name: str
    version: int  # raised whenever the same actions would lead to another game or observation
    Options: ClassVar[type]  # the frozen dataclass that declares the options
    options: Any  # an instance of it
    num_actions: int
    max_moves: int  # no game lasts longer
    planes_shape: tuple[int, int, int]  # H, W, C
    num_scalars: int
    extra_targets: ClassVar[tuple[str, ...]] = ()  # what `final_targets` gives
    roles: ClassVar[tuple[str, ...]] = ("host", "agent")  # of players 0 and 1; a game for one has ("host",) only

    # The rules

    @abc.abstractmethod
    def init(self, key: Array) -> State:
        """A new game."""

    def init_varied(self, key: Array, komi_spread: float) -> State:
        """A new game to learn from; where the rules have a komi, it is drawn around the options' own."""
        del komi_spread
        return self.init(key)

    def step(self, state: State, action: Array) -> State:
        """The state after `action` (Int32). A finished game does not change."""
        return freeze(self.is_over(state), state, self._play(state, jnp.asarray(action, jnp.int32)))

    @abc.abstractmethod
    def _play(self, state: State, action: Array) -> State:
        """The state after a legal action in a running game."""

    @abc.abstractmethod
    def legal_actions(self, state: State) -> Array:
        """Bool[A]; nothing is legal in a finished game, and something always is in a running one."""

    @abc.abstractmethod
    def observe(self, state: State) -> Observation:
        """The position from the side of the player to move."""

    @abc.abstractmethod
    def to_play(self, state: State) -> Array:
        """Int32[]: 0 or 1."""

    @abc.abstractmethod
    def is_over(self, state: State) -> Array:
        """Bool[]."""

    @abc.abstractmethod
    def returns(self, state: State) -> Array:
        """Float32[2]: the result for each player, zero-sum in [-1, 1]; zeros while the game runs."""

    def look(self, state: State) -> PositionInfo:
        """All of these together, for games that can share work between them."""
        return PositionInfo(self.legal_actions(state), self.observe(state), self.is_over(state), self.returns(state))

    def step_and_look(self, states: State, actions: Array, stay: Array | None = None) -> tuple[State, PositionInfo]:
        """`step`, then `look`, for a BATCH of games; where `stay` (Bool[B]) says so, only `look`.

        A game may have a faster way than `vmap`; the results are the same.
        """
        moved = jax.vmap(self.step)(states, actions)
        states = moved if stay is None else jax.vmap(freeze)(stay, states, moved)
        return states, jax.vmap(self.look)(states)

    @cached_property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """All symmetries; the first is the identity."""
        return (identity(self.num_actions),)

    # Search trees and learning

    def split(self, state: State) -> tuple[State, Any]:
        """The state as a tree node keeps it, and what is kept once for the whole tree."""
        return state, ()

    def join(self, node: State, kept: Any) -> State:
        """Undo `split` for the same position, or give a deeper node of the tree what its root keeps."""
        del kept
        return node

    def final_targets(self, state: State) -> dict[str, Array]:
        """What a finished game teaches besides its result, from the side of player 0, under `extra_targets`."""
        del state
        return {}

    def record_facts(self, state: State) -> dict[str, Array]:
        """What a record of the finished game should say besides its moves and result: numbers by name."""
        del state
        return {}

    # For people

    @abc.abstractmethod
    def render(self, state: State) -> str:
        """The position as text."""

    def from_text(self, text: str) -> State:
        """The position that `render` printed, without its past. ValueError if the text is no such position."""
        raise ValueError(f"{self.name}: positions cannot be read from text")

    def action_name(self, state: State, action: int) -> str:
        """What players call that action; ValueError if the player to move has no such action."""
        if not (0 <= action < self.num_actions and self._known_action(state, action)):
            raise ValueError(f"{self.name}: there is no action {action} here")
        return self._action_name(state, action)

    @abc.abstractmethod
    def _action_name(self, state: State, action: int) -> str:
        """`action_name`, for actions that exist."""

    def parse_action(self, state: State, text: str) -> int:
        """The legal action of that name; ValueError says why there is none."""
        wanted = text.strip().lower()
        legal = np.asarray(self._legal_actions(state))
        for action in range(self.num_actions):
            if self._known_action(state, action) and self.action_name(state, action).lower() == wanted:
                if legal[action]:
                    return action
                reason = "the game is over" if self.is_over(state) else "that move is not legal here"
                raise ValueError(f"{self.name}: {text.strip()}: {reason}")
        example = self.action_name(state, int(legal.argmax()))
        raise ValueError(f"{self.name}: no move is called {text.strip()!r}; names look like {example!r}")

    @cached_property
    def _legal_actions(self) -> Callable[[State], Array]:
        """`legal_actions`, compiled: people do not like to wait either."""
        return jax.jit(self.legal_actions)

    def _known_action(self, state: State, action: int) -> bool:
        """Whether the action has a name here (in some games an action belongs to one of the players only)."""
        del state, action
        return True


def freeze(over: Array, state: State, moved: State) -> State:
    """`moved`, or `state` if its game is over."""
    return jax.tree.map(lambda old, new: jnp.where(over, old, new), state, moved)


def identity(num_actions: int) -> Symmetry:
    """The symmetry that changes nothing."""
    same = np.arange(num_actions, dtype=np.int32)
    return Symmetry("identity", lambda x: x, lambda x: x, np.stack([same, same]))


def board_symmetry(name: str, board: Callable[[Array], Array], shape: tuple[int, int], num_actions: int) -> Symmetry:
    """A symmetry of a board whose first actions are its points, row by row; further actions stay."""
    points = shape[0] * shape[1]
    # Entry p of the transformed numbering is the point that moved to p.
    came_from = np.asarray(board(jnp.arange(points).reshape(shape))).reshape(-1)
    actions = np.arange(num_actions, dtype=np.int32)
    actions[came_from] = np.arange(points)
    return Symmetry(name, board, lambda x: x, np.stack([actions, actions]))


def square_symmetries(size: int, num_actions: int) -> tuple[Symmetry, ...]:
    """The eight symmetries of a square board."""
    turns: tuple[tuple[str, Callable[[Array], Array]], ...] = (
        ("identity", lambda x: x),
        ("rotate 90", lambda x: x.swapaxes(0, 1)[::-1]),
        ("rotate 180", lambda x: x[::-1, ::-1]),
        ("rotate 270", lambda x: x[::-1].swapaxes(0, 1)),
        ("mirror left-right", lambda x: x[:, ::-1]),
        ("mirror top-bottom", lambda x: x[::-1]),
        ("transpose", lambda x: x.swapaxes(0, 1)),
        ("anti-transpose", lambda x: x[::-1, ::-1].swapaxes(0, 1)),
    )
    return tuple(board_symmetry(name, board, (size, size), num_actions) for name, board in turns)
