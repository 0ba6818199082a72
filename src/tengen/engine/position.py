"""The game so far, with moves that can be taken back."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from tengen.errors import TengenError
from tengen.games.core import Game


class IllegalMove(TengenError):
    """A move that the rules forbid here."""


@dataclass(frozen=True)
class PositionStep:
    """A position, and the action that led to it (None: the start, or a position that was put there)."""

    state: Any
    action: int | None


class GamePosition:
    def __init__(self, game: Game) -> None:
        self.game = game
        self._init = jax.jit(game.init)
        self._step = jax.jit(game.step)
        self._legal = jax.jit(game.legal_actions)
        self.steps: list[PositionStep] = []
        self.reset()

    def reset(self, state: Any = None, actions: Iterable[int] = ()) -> None:
        """Begin at `state` (None: as the game begins), then play `actions`. IllegalMove leaves all as it was."""
        before = self.steps
        self.steps = [PositionStep(self._init(jax.random.key(0)) if state is None else state, None)]
        try:
            for action in actions:
                self.play(action)
        except IllegalMove:
            self.steps = before
            raise

    @property
    def state(self) -> Any:
        return self.steps[-1].state

    @property
    def actions(self) -> tuple[int, ...]:
        return tuple(step.action for step in self.steps if step.action is not None)

    @property
    def player(self) -> int:
        """Who moves, 0 or 1."""
        return int(self.game.to_play(self.state))

    @property
    def over(self) -> bool:
        return bool(self.game.is_over(self.state))

    def legal(self) -> np.ndarray:
        """Bool[A]."""
        return np.asarray(self._legal(self.state))

    def play(self, action: int) -> None:
        """Make a move. IllegalMove if the rules forbid it."""
        if not (0 <= action < self.game.num_actions and self.legal()[action]):
            reason = "the game is over" if self.over else "not legal here"
            raise IllegalMove(f"{self.game.name}: action {action}: {reason}")
        self.steps.append(PositionStep(self._step(self.state, np.int32(action)), int(action)))

    def undo(self) -> bool:
        """Take the last move back, and what was put on top of it; False if there is none."""
        for number in range(len(self.steps) - 1, 0, -1):
            if self.steps[number].action is not None:
                del self.steps[number:]
                return True
        return False

    def put(self, state: Any) -> None:
        """Go on from another position, such as the same with the other player to move. `undo` takes it back."""
        self.steps.append(PositionStep(state, None))

    def rewind(self, length: int) -> None:
        del self.steps[max(length, 1) :]

    def revise(self, change: Callable[[Any], Any]) -> None:
        self.steps = [PositionStep(change(step.state), step.action) for step in self.steps]

    def step(self, state: Any, action: int) -> Any:
        """The position after a legal action in `state`; the game itself stays where it is."""
        return self._step(state, np.int32(action))

    def names(self, actions: Iterable[int], name: Callable[[Any, int], str] | None = None) -> list[str]:
        """The names of successive actions from here, up to the first impossible one; `name` gives other names."""
        name = name or self.game.action_name
        state, names = self.state, []
        for action in actions:
            try:
                names.append(name(state, action))
            except ValueError:
                break
            state = self._step(state, np.int32(action))
        return names
