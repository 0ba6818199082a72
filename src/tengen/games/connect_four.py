"""Connect four on six rows and seven columns. See docs/games/connect_four.md."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
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
_PLANES = {"stones": 3, "threats": 5, "strategy": 9}


@dataclass(frozen=True)
class ConnectFourOptions:
    observation: Literal["stones", "threats", "strategy"] = setting(
        "stones",
        "what a network sees: the stones, also the empty cells that would complete four in a line, or also those "
        "that would make three of four, the lowest ones and the rows that zugzwang gives to a player",
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
        self.planes_shape = (ROWS, COLUMNS, _PLANES[options.observation])

    def for_network(self, options: Mapping[str, Any]) -> "ConnectFour":
        """The states are the same, whatever a network sees."""
        seen = options.get("observation", "stones")
        return self if seen == self.options.observation else _with_observation(seen)

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
        taken, seen = mine | theirs, [mine, theirs]
        if self.options.observation != "stones":
            seen += [threats(stones) & ~taken for stones in (mine, theirs)]
        if self.options.observation == "strategy":
            # When both fill the last columns in turn, the first player gets the odd rows and the second the even ones.
            rows = jnp.where(state.turn == 0, 0b010101, 0b101010).astype(jnp.uint8)
            seen += [*(threes(stones, taken) for stones in (mine, theirs)), taken + 1 & FULL, jnp.full(COLUMNS, rows)]
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


@lru_cache
def _with_observation(observation: Literal["stones", "threats", "strategy"]) -> ConnectFour:
    return ConnectFour(ConnectFourOptions(observation))


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
    found = jnp.zeros_like(x)
    for others in _lines(x):
        found |= others[0] & others[1] & others[2]
    return (found & FULL).astype(jnp.uint8)


def threes(columns: UInt8[Array, "7"], taken: UInt8[Array, "7"]) -> UInt8[Array, "7"]:
    """The empty cells that would make three of these stones in a line of four whose last cell is empty."""
    stones, empty = columns.astype(jnp.int32), ~taken.astype(jnp.int32) & FULL
    found = jnp.zeros_like(stones)
    for (a, b, c), (no_a, no_b, no_c) in zip(_lines(stones), _lines(empty), strict=True):
        found |= a & b & no_c | a & no_b & c | no_a & b & c
    return (found & empty).astype(jnp.uint8)


def _lines(columns: Int32[Array, "7"]) -> Iterator[list[Int32[Array, "7"]]]:
    """For every line of four through a cell, whether the three other cells of that line are in the set."""
    beside = jnp.pad(columns, 3)
    for across, rise in ((0, 1), (1, -1), (1, 0), (1, 1)):
        for first in range(-3, 1):
            steps = [step for step in range(first, first + 4) if step]
            yield [_shifted(beside[3 + step * across :][:COLUMNS], step * rise) for step in steps]


def _shifted(columns: Int32[Array, "7"], rows: int) -> Int32[Array, "7"]:
    return columns >> rows if rows >= 0 else columns << -rows


def _board(columns: UInt8[Any, "7"]) -> Bool[Array, "6 7"]:
    """The stones as a board, the top row first."""
    rows = jnp.arange(ROWS - 1, -1, -1, dtype=jnp.uint32)
    return (columns[None, :].astype(jnp.uint32) >> rows[:, None]) & 1 == 1
