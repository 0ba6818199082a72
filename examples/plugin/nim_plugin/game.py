"""The game: `tengen games nim`, and `game.name: nim` in a configuration."""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp

from tengen.games import Game, Observation
from tengen.schema import setting


@dataclass(frozen=True)
class NimOptions:
    """Options of Nim: `heaps` and `size` in the section `game` of a configuration."""

    heaps: int = setting(4, "heaps at the start", low=1, high=16)
    size: int = setting(5, "matches of each heap at the start", low=1, high=100)


class NimState(NamedTuple):
    """A position."""

    heaps: jnp.ndarray  # Int8[heaps]: matches of each heap
    turn: jnp.ndarray  # Int8[]: who moves


class Nim(Game[NimState]):
    """Nim: take any number of matches from one heap; taking the last match of all wins."""

    name = "nim"
    version = 1
    Options = NimOptions
    players = ("first", "second")
    planes_shape = (1, 1, 0)  # no board

    def __init__(self, options):
        super().__init__(options)
        self.heaps, self.size = options.heaps, options.size
        # Action h * size + n takes n + 1 matches from heap h.
        self.num_actions = self.num_scalars = self.max_moves = self.heaps * self.size

    def init(self, key):
        return NimState(jnp.full(self.heaps, self.size, jnp.int8), jnp.int8(0))

    def _play(self, state, action):
        taken = (action % self.size + 1).astype(jnp.int8)
        return NimState(state.heaps.at[action // self.size].add(-taken), (1 - state.turn).astype(jnp.int8))

    def legal_actions(self, state):
        return (jnp.arange(self.size) < state.heaps[:, None]).reshape(-1)

    def observe(self, state):  # one number per match: 1 where it is left
        return Observation(jnp.zeros(self.planes_shape, bool), self.legal_actions(state).astype(jnp.float32))

    def to_play(self, state):
        return state.turn.astype(jnp.int32)

    def is_over(self, state):
        return (state.heaps == 0).all()

    def returns(self, state):
        won = (jnp.arange(2) != state.turn).astype(jnp.float32)  # who took the last match
        return jnp.where(self.is_over(state), won - won[::-1], 0)

    def render(self, state):
        rows = [f"{'abcdefghijklmnop'[heap]} {'|' * int(left)}" for heap, left in enumerate(state.heaps)]
        return "\n".join([*rows, f"to play: {self.players[int(state.turn)]}"])

    def _action_name(self, state, action):
        return f"{'abcdefghijklmnop'[action // self.size]}{action % self.size + 1}"
