"""The rules for one game at a time, for matches with foreign engines."""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from tengen import jax_setup
from tengen.data.records.records import shorten
from tengen.games.core import Game
from tengen.match.engines.faults import Fault


class RefereePosition(NamedTuple):
    """A position, on the host."""

    state: Any  # of NumPy arrays
    legal: np.ndarray  # Bool[A]
    player: int  # who moves
    over: bool
    returns: np.ndarray  # Float32[2]


class Referee:
    """Applies the rules of a game, on the CPU: a single position is too small to be worth a trip to a device."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self._cpu = jax_setup.cpu()

    def begin(self, seed: np.ndarray) -> RefereePosition:
        """The start of a game; `seed` is the data of a key."""
        return self._called(_begin, np.asarray(seed, np.uint32))

    def play(self, position: RefereePosition, action: int) -> RefereePosition:
        """The position after a legal action."""
        return self._called(_play, position.state, np.int32(action))

    def name(self, position: RefereePosition, action: int) -> str:
        """The name of that action."""
        with jax.default_device(self._cpu):
            return self.game.action_name(position.state, action)

    def read(self, position: RefereePosition, move: str) -> int:
        """The legal action that a player names. Fault if there is none."""
        with jax.default_device(self._cpu):
            try:
                return self.game.parse_action(position.state, move)
            except ValueError as error:
                raise Fault("illegal move", f"played {shorten(move)}: {error}") from None

    def score(self, position: RefereePosition) -> float | None:
        """The score of player 0 in points; None for games without points."""
        with jax.default_device(self._cpu):
            found = _facts(self.game, position.state).get("score")
        return None if found is None else float(found)

    def _called(self, function: Any, *inputs: Any) -> RefereePosition:
        with jax.default_device(self._cpu):
            state, legal, player, over, returns = jax.device_get(function(self.game, *inputs))
        return RefereePosition(state, legal, int(player), bool(over), returns)


@partial(jax.jit, static_argnames="game")
def _begin(game: Game, seed: Array) -> tuple[Any, ...]:
    return _look(game, game.init(jax.random.wrap_key_data(seed)))


@partial(jax.jit, static_argnames="game")
def _play(game: Game, state: Any, action: Array) -> tuple[Any, ...]:
    return _look(game, game.step(state, action))


@partial(jax.jit, static_argnames="game")
def _facts(game: Game, state: Any) -> dict[str, Array]:
    return game.record_facts(state)


def _look(game: Game, state: Any) -> tuple[Any, ...]:
    return state, game.legal_actions(state), game.to_play(state), game.is_over(state), game.returns(state)
