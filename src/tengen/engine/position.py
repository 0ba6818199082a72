"""The game so far, with moves that can be taken back."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from tengen.data.records.records import Record
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
    """One game: its moves so far and its present position. Engines add a search tree, which `_changed` empties."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self._init = jax.jit(game.init)
        self._step = jax.jit(game.step)
        self._legal = jax.jit(game.legal_actions)
        self.steps = [PositionStep(self._init(jax.random.key(0)), None)]

    def _changed(self) -> None:
        """Called after every change that is not a move."""

    def reset(self, state: Any = None, actions: Iterable[int] = ()) -> None:
        """Begin at `state` (None: as the game begins), then play `actions`. IllegalMove leaves all as it was."""
        before = self.steps
        self.steps = [PositionStep(self._init(jax.random.key(0)) if state is None else state, None)]
        try:
            for action in actions:
                GamePosition.play(self, action)
        except IllegalMove:
            self.steps = before
            raise
        self._changed()

    @property
    def state(self) -> Any:
        return self.steps[-1].state

    @property
    def actions(self) -> tuple[int, ...]:
        return tuple(step.action for step in self.steps if step.action is not None)

    @property
    def player(self) -> int:
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
        """Take back the last move and everything after it; False if there is no move."""
        for number in range(len(self.steps) - 1, 0, -1):
            if self.steps[number].action is not None:
                self.rewind(number)
                return True
        return False

    def put(self, state: Any) -> None:
        """Go on from another position, such as the same with the other player to move. `undo` takes it back."""
        self.steps.append(PositionStep(state, None))
        self._changed()

    def rewind(self, length: int) -> None:
        """Forget all steps but the first `length`."""
        del self.steps[max(length, 1) :]
        self._changed()

    def revise(self, change: Callable[[Any], Any]) -> None:
        """Change all positions of the game so far, such as their komi."""
        self.steps = [PositionStep(change(step.state), step.action) for step in self.steps]
        self._changed()

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

    def last_choice(self, seat: int | None) -> int | None:
        """How many steps the game had when a player (None: either) last made a move; None if that never was."""
        movers = ((number, int(self.game.to_play(step.state))) for number, step in enumerate(self.steps[:-1], 1))
        return max((number for number, mover in movers if seat in (None, mover)), default=None)

    def record(self, resigned: int | None = None, **about: Any) -> Record:
        """The game so far as a record, of which `about` says the rest; `resigned` is the player who gave it up."""
        usual, start = (self.game.render(state) for state in (self._init(jax.random.key(0)), self.steps[0].state))
        ending: dict[str, Any] = {"ending": "unknown"}
        if resigned is not None:
            ending = {"ending": "resigned", "result": 2.0 * resigned - 1}
        elif self.over:
            ending = {"ending": "played out", "result": float(self.game.returns(self.state)[0])}
            if "score" in (facts := self.game.record_facts(self.state)):
                ending["score"] = float(facts["score"])
        return Record.of(self.game, self.actions, start=None if start == usual else start, **ending, **about)
