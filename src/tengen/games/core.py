"""The interface of a game, and the types that all games share. See docs/architecture.md."""

import abc
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key

from tengen.games.targets import Target

State = TypeVar("State")
RandomKey = Key[Array, ""]
Moves = Int32[Array, " batch"]  # one for each of a batch of games
Which = Bool[Array, " batch"]  # of the games
BoardKind = Literal["points", "squares", "marks", "holes", "hexagons"]
"""Stones on crossings (Go), on squares (Othello), crosses and rings (tic-tac-toe), discs that fall (connect four)."""


class Observation(NamedTuple):
    """The network's input, from the side of the player to move. On a board, plane 0 marks the points on the board."""

    planes: Bool[Array, "*batch height width planes"]
    scalars: Float32[Array, "*batch scalars"]


class PositionInfo(NamedTuple):
    """What a network and a search need to know about a position."""

    legal: Bool[Array, "*batch actions"]
    observation: Observation
    over: Bool[Array, "*batch"]
    returns: Float32[Array, "*batch 2"]
    score: Float32[Array, "*batch"] | None = None  # points of player 0 once the game is over, if it has this target


@dataclass(frozen=True, eq=False)
class Symmetry:
    """A renaming of the board that leaves the rules unchanged."""

    name: str
    board: Callable[[Array], Array]  # for planes and for targets that lie on the board: the first two axes
    scalars: Callable[[Array], Array]
    actions: Int32[np.ndarray, "2 actions"]  # actions[player, a] is what that player's action a becomes

    @cached_property
    def inverse(self) -> Int32[np.ndarray, "2 actions"]:
        """inverse[player, a] is the action that becomes a."""
        return np.argsort(self.actions, axis=1).astype(np.int32)


@dataclass(frozen=True)
class NoOptions:
    """For games whose rules have no options."""


class Game(abc.ABC, Generic[State]):
    """The rules of one game under one set of options.

    Players are 0 (moves first) and 1. An action outside the legal mask gives an unspecified state: check with
    `legal_actions`, or use `parse_action`, which refuses illegal moves.
    """

    name: str
    version: int  # raised whenever the same actions would lead to another game or observation
    Options: ClassVar[type] = NoOptions  # the frozen dataclass that declares the options
    options: Any  # an instance of it
    num_actions: int
    most_legal_moves: int | None = None  # in a position, if far fewer than there are actions: search is faster then
    max_moves: int  # no game lasts longer
    playout_moves: int | None = None  # random games of `mcts:N` are cut off and estimated after so many moves
    planes_shape: tuple[int, int, int]  # height, width, planes
    num_scalars: int
    extra_targets: tuple[Target, ...] = ()  # what `final_targets` gives
    halves_draws: ClassVar[bool] = False  # networks learn a draw as half a win and half a loss
    weighs_targets: bool = False  # rows have weights for single targets, as those of KataGo do
    players: tuple[str, ...] = ("first", "second")  # what the rules call players 0 and 1; a game for one has one name
    drawn_as: ClassVar[BoardKind | None] = None
    """How pictures and the browser draw what `render_grid` prints (x, o and .); an action is the point of its stone."""

    def __init__(self, options: Any) -> None:
        self.options = options

    @property
    def roles(self) -> tuple[str, ...]:
        """What trainers call the players: their names, written as identifiers where they are not."""
        names = tuple(re.sub(r"[^a-z0-9]+", "_", player.lower()).strip("_") for player in self.players)
        good = len(set(names)) == len(names) and all(name.isidentifier() for name in names)
        return names if good else ("first", "second")[: len(names)]

    @cached_property
    def exact(self) -> "Game[State]":
        """The same game for looking at few positions, without the bounds that make thousands of games fast."""
        return self

    def for_network(self, options: Mapping[str, Any]) -> "Game[State]":
        """This game with the observation of a network that was trained with other options, if that can be had."""
        return self

    def states_for(self, other: "Game[State]", states: State) -> State:
        """States of this game as those of `other`, which `for_network` gave."""
        return states

    # The rules

    @abc.abstractmethod
    def init(self, key: RandomKey) -> State:
        """A new game."""

    def init_varied(self, key: RandomKey, komi_spread: float) -> State:
        """A new game for self-play; if the rules have a komi, it is drawn around the configured one."""
        return self.init(key)

    def step(self, state: State, action: Int32[Array, ""]) -> State:
        """The state after `action`. A finished game does not change."""
        return freeze(self.is_over(state), state, self._play(state, jnp.asarray(action, jnp.int32)))

    @abc.abstractmethod
    def _play(self, state: State, action: Int32[Array, ""]) -> State:
        """The state after a legal action in a running game."""

    @abc.abstractmethod
    def legal_actions(self, state: State) -> Bool[Array, " actions"]:
        """Nothing is legal in a finished game; at least one action is legal in a running game."""

    @abc.abstractmethod
    def observe(self, state: State) -> Observation:
        """The position from the side of the player to move."""

    @abc.abstractmethod
    def to_play(self, state: State) -> Int32[Array, ""]:
        """0 or 1."""

    @abc.abstractmethod
    def is_over(self, state: State) -> Bool[Array, ""]:
        """Whether the game has ended."""

    @abc.abstractmethod
    def returns(self, state: State) -> Float32[Array, "2"]:
        """The result for each player, zero-sum in [-1, 1]; zeros while the game runs."""

    def estimate(self, state: State) -> Float32[Array, "2"]:
        """A simple guess at the result of a running game, for games with `playout_moves`."""
        return jnp.zeros(2, jnp.float32)

    def look(self, state: State) -> PositionInfo:
        """Legal actions, observation, end and result together, for games that can share work between them."""
        target = self.target("score")
        score = self.final_targets(state)["score"] if target and target.sides == "opposite" else None
        over, returns = self.is_over(state), self.returns(state)
        return PositionInfo(self.legal_actions(state), self.observe(state), over, returns, score)

    def step_and_look(self, states: State, actions: Moves, stay: Which | None = None) -> tuple[State, PositionInfo]:
        """`step`, then `look`, for a BATCH of games; games marked in `stay` make no move.

        A game may implement this faster than `vmap` does; the results are the same.
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
        """The part of the state that every tree node stores, and the part stored once per tree."""
        return state, ()

    def join(self, node: State, kept: Any) -> State:
        """Undoes `split`; `kept` may also be that of the root, for any node of its tree."""
        return node

    def final_targets(self, state: State) -> dict[str, Array]:
        """The values of `extra_targets` in a finished game, by name; for player 0, unless the target says otherwise.

        It may be called in a running game too, where the values mean nothing.
        """
        return {}

    def target(self, name: str) -> Target | None:
        """The extra target with that name."""
        return next((target for target in self.extra_targets if target.name == name), None)

    def record_facts(self, state: State) -> dict[str, Array]:
        """Numbers for the record of a finished game besides its moves and result, by name."""
        return {}

    # For people

    @abc.abstractmethod
    def render(self, state: State) -> str:
        """The position as text."""

    def from_text(self, text: str) -> State:
        """The position that `render` printed, without its history. Raises ValueError if the text is not one."""
        raise ValueError(f"{self.name}: positions cannot be read from text")

    def action_name(self, state: State, action: int) -> str:
        """The name of an action, such as `D4`. Raises ValueError if the player to move does not have it."""
        if not (0 <= action < self.num_actions and self._known_action(state, action)):
            raise ValueError(f"{self.name}: there is no action {action} here")
        return self._action_name(state, action)

    @abc.abstractmethod
    def _action_name(self, state: State, action: int) -> str:
        """`action_name`, for actions that exist."""

    def parse_action(self, state: State, text: str) -> int:
        """The legal action with that name. Raises ValueError with the reason if there is none."""
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
        return jax.jit(self.legal_actions)

    def _known_action(self, state: State, action: int) -> bool:
        """Whether the action has a name here (in some games an action belongs to one player only)."""
        return True


def freeze(over: Bool[Array, ""], state: State, moved: State) -> State:
    """Returns `state` if its game is over, otherwise `moved`."""
    return jax.tree.map(lambda old, new: jnp.where(over, old, new), state, moved)


def identity(num_actions: int) -> Symmetry:
    same = np.arange(num_actions, dtype=np.int32)
    return Symmetry("identity", lambda x: x, lambda x: x, np.stack([same, same]))


def board_symmetry(name: str, board: Callable[[Array], Array], shape: tuple[int, int], num_actions: int) -> Symmetry:
    """A symmetry of a board whose first actions are its points, row by row; other actions keep their numbers."""
    points = shape[0] * shape[1]
    # Entry p of the transformed numbering is the point that moved to p. NumPy, because this needs no device.
    numbers: Any = np.arange(points).reshape(shape)
    came_from = np.asarray(board(numbers)).reshape(-1)
    actions = np.arange(num_actions, dtype=np.int32)
    actions[came_from] = np.arange(points)
    return Symmetry(name, board, lambda x: x, np.stack([actions, actions]))


def square_symmetries(size: int, num_actions: int) -> tuple[Symmetry, ...]:
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
