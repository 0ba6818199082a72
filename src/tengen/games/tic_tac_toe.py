"""Tic-tac-toe. See docs/games/tic_tac_toe.md."""

from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int8, Int32, UInt16

from tengen.games.core import Game, Observation, RandomKey, Symmetry, square_symmetries
from tengen.games.text import LETTERS, check_counts, parse_grid, player_number, point_name, render_grid

SIDE = 3
POINTS = SIDE * SIDE
PLAYERS = ("x", "o")
LINES = np.array(
    [0b111 << 3 * row for row in range(3)] + [0b1001001 << column for column in range(3)] + [0b100010001, 0b001010100],
    np.uint32,
)


class TicTacToeState(NamedTuple):
    """A position; bit p is point p, row by row from the top left."""

    stones: UInt16[Array, "*batch 2"]  # the points of each player
    turn: Int8[Array, "*batch"]  # who moves


class TicTacToe(Game[TicTacToeState]):
    """Tic-tac-toe: three in a row on 3x3."""

    name = "tic_tac_toe"
    version = 1
    players = PLAYERS
    drawn_as = "marks"
    num_actions = POINTS
    max_moves = POINTS
    planes_shape = (SIDE, SIDE, 3)
    num_scalars = 0

    def init(self, key: RandomKey) -> TicTacToeState:
        return TicTacToeState(jnp.zeros(2, jnp.uint16), jnp.int8(0))

    def _play(self, state: TicTacToeState, action: Int32[Array, ""]) -> TicTacToeState:
        point = jnp.uint32(1) << action.astype(jnp.uint32)
        placed = jnp.where(jnp.arange(2) == state.turn, point, 0).astype(jnp.uint16)
        return TicTacToeState(state.stones | placed, (1 - state.turn).astype(jnp.int8))

    def legal_actions(self, state: TicTacToeState) -> Bool[Array, " actions"]:
        taken = state.stones[0] | state.stones[1]
        return ~_points(taken) & ~self.is_over(state)

    def observe(self, state: TicTacToeState) -> Observation:
        mine, theirs = jnp.where(state.turn == 0, state.stones, state.stones[::-1])
        planes = jnp.stack([jnp.ones(POINTS, bool), _points(mine), _points(theirs)], -1)
        return Observation(planes.reshape(self.planes_shape), jnp.zeros(0, jnp.float32))

    def to_play(self, state: TicTacToeState) -> Int32[Array, ""]:
        return state.turn.astype(jnp.int32)

    def is_over(self, state: TicTacToeState) -> Bool[Array, ""]:
        full = (state.stones[0] | state.stones[1]) == (1 << POINTS) - 1
        return full | self._has_line(state).any()

    def _has_line(self, state: TicTacToeState) -> Bool[Array, "2"]:
        lines = jnp.asarray(LINES)
        return ((state.stones[:, None].astype(jnp.uint32) & lines) == lines).any(1)

    def returns(self, state: TicTacToeState) -> Float32[Array, "2"]:
        won = self._has_line(state).astype(jnp.float32)
        return won - won[::-1]

    @cached_property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return square_symmetries(SIDE, POINTS)

    def render(self, state: TicTacToeState) -> str:
        x, o = (np.asarray(_points(stones)) for stones in state.stones)
        cells = np.where(x, "x", np.where(o, "o", ".")).reshape(SIDE, SIDE).tolist()
        return render_grid(cells, LETTERS[:SIDE], "123", {"to play": PLAYERS[int(state.turn)]})

    def from_text(self, text: str) -> TicTacToeState:
        cells, notes = parse_grid(text, (SIDE, SIDE), ".xo", ("to play",), self.name)
        flat = [cell for row in cells for cell in row]
        stones = [sum(1 << p for p, cell in enumerate(flat) if cell == player) for player in PLAYERS]
        turn = player_number(notes, PLAYERS, self.name)
        check_counts(flat.count("x"), flat.count("o"), turn, self.name)
        state = TicTacToeState(jnp.array(stones, jnp.uint16), jnp.int8(turn))
        if self._has_line(state)[turn]:
            raise ValueError(f"{self.name}: {PLAYERS[turn]} cannot be to play with three in a row")
        return state

    def _action_name(self, state: TicTacToeState | None, action: int) -> str:
        return point_name(action, SIDE)


def _points(bits: UInt16[Any, ""]) -> Bool[Array, "9"]:
    return (bits.astype(jnp.uint32) >> jnp.arange(POINTS, dtype=jnp.uint32)) & 1 == 1
