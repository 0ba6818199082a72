"""Connect four on six rows and seven columns. See docs/games/connect_four.md."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int8, Int32, UInt8

from tengen.games.core import Game, Observation, RandomKey, Symmetry, board_symmetry, identity
from tengen.games.text import check_counts, parse_grid, player_number, render_grid
from tengen.schema import setting

ROWS, COLUMNS = 6, 7
FULL = (1 << ROWS) - 1
PLAYERS = ("x", "o")


@dataclass(frozen=True)
class ConnectFourOptions:
    observation: Literal["stones", "threats"] = setting(
        "stones",
        "what a network sees: the stones, or also the empty cells that would complete four in a line",
        before="stones",
    )


class ConnectFourState(NamedTuple):
    stones: UInt8[Array, "*batch 2 7"]  # for each player and column, bit r is the r-th row from the bottom
    turn: Int8[Array, "*batch"]  # who moves
    winner: Int8[Array, "*batch"]  # who has four in a line, or -1


class ConnectFour(Game[ConnectFourState]):
    """Connect four: stones fall to the lowest free row of a column; four in a line win."""

    name = "connect_four"
    version = 1
    players = PLAYERS
    drawn_as = "holes"
    num_actions = COLUMNS
    max_moves = ROWS * COLUMNS
    num_scalars = 0
    Options: ClassVar[type] = ConnectFourOptions

    def __init__(self, options: ConnectFourOptions) -> None:
        self.options = options
        self.sees_threats = options.observation == "threats"
        self.planes_shape = (ROWS, COLUMNS, 5 if self.sees_threats else 3)

    def for_network(self, options: Mapping[str, Any]) -> "ConnectFour":
        """The states are the same, whatever a network sees."""
        return self if options.get("observation", "stones") == self.options.observation else self._seen_otherwise

    @cached_property
    def _seen_otherwise(self) -> "ConnectFour":
        return ConnectFour(ConnectFourOptions("stones" if self.sees_threats else "threats"))

    def init(self, key: RandomKey) -> ConnectFourState:
        return ConnectFourState(jnp.zeros((2, COLUMNS), jnp.uint8), jnp.int8(0), jnp.int8(-1))

    def _play(self, state: ConnectFourState, action: Int32[Array, ""]) -> ConnectFourState:
        taken = state.stones[0] | state.stones[1]
        # A column is filled from below, so adding one to it gives the lowest free bit.
        landing = jnp.where(jnp.arange(COLUMNS) == action, taken + 1, 0).astype(jnp.uint8)
        mine = jnp.where(state.turn == 0, state.stones[0], state.stones[1]) | landing
        stones = jnp.where((jnp.arange(2) == state.turn)[:, None], mine, state.stones)
        winner = jnp.where(has_four(mine), state.turn, -1).astype(jnp.int8)
        return ConnectFourState(stones, (1 - state.turn).astype(jnp.int8), winner)

    def legal_actions(self, state: ConnectFourState) -> Bool[Array, " actions"]:
        return ((state.stones[0] | state.stones[1]) != FULL) & ~self.is_over(state)

    def observe(self, state: ConnectFourState) -> Observation:
        mine = jnp.where(state.turn == 0, state.stones[0], state.stones[1])
        theirs = jnp.where(state.turn == 0, state.stones[1], state.stones[0])
        seen = [mine, theirs]
        if self.sees_threats:
            seen += [threats(stones) & ~(mine | theirs) for stones in (mine, theirs)]
        planes = jnp.stack([jnp.ones((ROWS, COLUMNS), bool), *map(_board, seen)], -1)
        return Observation(planes, jnp.zeros(0, jnp.float32))

    def to_play(self, state: ConnectFourState) -> Int32[Array, ""]:
        return state.turn.astype(jnp.int32)

    def is_over(self, state: ConnectFourState) -> Bool[Array, ""]:
        full = ((state.stones[0] | state.stones[1]) == FULL).all()
        return full | (state.winner >= 0)

    def returns(self, state: ConnectFourState) -> Float32[Array, "2"]:
        won = (jnp.arange(2) == state.winner).astype(jnp.float32)
        return won - won[::-1]

    @cached_property
    def symmetries(self) -> tuple[Symmetry, ...]:
        mirror = board_symmetry("mirror left-right", lambda x: x[:, ::-1], (1, COLUMNS), COLUMNS)
        return identity(COLUMNS), mirror

    def render(self, state: ConnectFourState) -> str:
        x, o = (np.asarray(_board(stones)) for stones in state.stones)
        cells = np.where(x, "x", np.where(o, "o", ".")).tolist()
        rows = [str(ROWS - r) for r in range(ROWS)]
        return render_grid(cells, "1234567", rows, {"to play": PLAYERS[int(state.turn)]})

    def from_text(self, text: str) -> ConnectFourState:
        cells, notes = parse_grid(text, (ROWS, COLUMNS), ".xo", ("to play",), self.name)
        columns = [[row[c] for row in reversed(cells)] for c in range(COLUMNS)]
        if any("." in column[: len("".join(column).rstrip("."))] for column in columns):
            raise ValueError(f"{self.name}: a stone hangs in the air")
        stones = [[sum((cell == p) << r for r, cell in enumerate(column)) for column in columns] for p in PLAYERS]
        bits = jnp.array(stones, jnp.uint8)
        turn = player_number(notes, PLAYERS, self.name)
        flat = [cell for row in cells for cell in row]
        check_counts(flat.count("x"), flat.count("o"), turn, self.name)
        if has_four(bits[turn]):
            raise ValueError(f"{self.name}: {PLAYERS[turn]} cannot be to play with four in a line")
        winner = 1 - turn if has_four(bits[1 - turn]) else -1
        return ConnectFourState(bits, jnp.int8(turn), jnp.int8(winner))

    def _action_name(self, state: ConnectFourState | None, action: int) -> str:
        return str(action + 1)


def has_four(columns: UInt8[Array, "7"]) -> Bool[Array, ""]:
    x = columns.astype(jnp.uint32)
    upright = x & x >> 1 & x >> 2 & x >> 3
    a, b, c, d = (x[k : COLUMNS - 3 + k] for k in range(4))
    level = a & b & c & d
    rising = a & b >> 1 & c >> 2 & d >> 3
    falling = a & b << 1 & c << 2 & d << 3
    return upright.any() | (level | falling | rising).any()


def threats(columns: UInt8[Array, "7"]) -> UInt8[Array, "7"]:
    """The cells above these stones, or beside them, that would complete four in a line."""
    x = columns.astype(jnp.int32)
    beside = jnp.pad(x, 3)
    found = x << 1 & x << 2 & x << 3
    for rise in (-1, 0, 1):

        def at(step: int, rise: int = rise) -> Array:
            """For every cell, whether there is a stone so many steps to the right along the line."""
            column = beside[3 + step : 3 + step + COLUMNS]
            return column >> step * rise if step * rise >= 0 else column << -step * rise

        for steps in ((-3, -2, -1), (-2, -1, 1), (-1, 1, 2), (1, 2, 3)):
            found |= at(steps[0]) & at(steps[1]) & at(steps[2])
    return (found & FULL).astype(jnp.uint8)


def _board(columns: UInt8[Any, "7"]) -> Bool[Array, "6 7"]:
    """The stones as a board, the top row first."""
    rows = jnp.arange(ROWS - 1, -1, -1, dtype=jnp.uint32)
    return (columns[None, :].astype(jnp.uint32) >> rows[:, None]) & 1 == 1
