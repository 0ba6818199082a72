"""The game: `tengen games nim`, and `game.name: nim` in a configuration."""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp

from tengen.games import Game, Observation
from tengen.schema import setting


@dataclass(frozen=True)
class NimOptions:
    """Options of Nim: `matches` in the section `game` of a configuration."""

    matches: int = setting(21, "matches on the table at the start", low=1, high=100)


class NimState(NamedTuple):
    """A position."""

    left: jnp.ndarray  # Int8[]: matches on the table
    turn: jnp.ndarray  # Int8[]: who moves


class Nim(Game[NimState]):
    """Nim: take one, two or three matches; taking the last one wins."""

    name = "nim"
    version = 1
    Options = NimOptions
    players = ("first", "second")
    num_actions = 3
    planes_shape = (1, 1, 0)  # no board

    def __init__(self, options):
        super().__init__(options)
        self.matches = self.max_moves = self.num_scalars = options.matches

    def init(self, key):
        return NimState(jnp.int8(self.matches), jnp.int8(0))

    def _play(self, state, action):
        return NimState(state.left - (action + 1).astype(jnp.int8), (1 - state.turn).astype(jnp.int8))

    def legal_actions(self, state):
        return jnp.arange(1, 4) <= state.left

    def observe(self, state):
        left = jnp.arange(self.matches) < state.left
        return Observation(jnp.zeros(self.planes_shape, bool), left.astype(jnp.float32))

    def to_play(self, state):
        return state.turn.astype(jnp.int32)

    def is_over(self, state):
        return state.left == 0

    def returns(self, state):
        won = (jnp.arange(2) != state.turn).astype(jnp.float32)  # who took the last match
        return jnp.where(self.is_over(state), won - won[::-1], 0)

    def render(self, state):
        return f"{'|' * int(state.left)}\nto play: {self.players[int(state.turn)]}"

    def _action_name(self, state, action):
        return str(action + 1)
