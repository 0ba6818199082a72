"""Othello on 8x8, with forced passes. See docs/games/othello.md."""

from functools import cached_property, reduce
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float32, Int8, Int32, UInt32

from tengen.games.bits import Bits, one_bit
from tengen.games.core import Game, Observation, RandomKey, Symmetry, square_symmetries
from tengen.games.targets import OWNERSHIP, SCORE
from tengen.games.text import LETTERS, parse_grid, player_number, point_name, render_grid

SIDE = 8
POINTS = SIDE * SIDE
PASS = POINTS
PLAYERS = ("dark", "light")
DIRECTIONS = tuple((r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0))
NOT_FIRST_COLUMN = np.uint32(0xFEFEFEFE)
NOT_LAST_COLUMN = np.uint32(0x7F7F7F7F)


def _moved(squares: Bits, rows: int, columns: int) -> Bits:
    """Every point one step further; those that leave the board are gone."""
    top, bottom = squares
    if columns == 1:
        top, bottom = (top << 1) & NOT_FIRST_COLUMN, (bottom << 1) & NOT_FIRST_COLUMN
    elif columns == -1:
        top, bottom = (top >> 1) & NOT_LAST_COLUMN, (bottom >> 1) & NOT_LAST_COLUMN
    if rows == 1:
        top, bottom = top << SIDE, (bottom << SIDE) | (top >> 24)
    elif rows == -1:
        top, bottom = (top >> SIDE) | (bottom << 24), bottom >> SIDE
    return Bits(top, bottom)


class OthelloState(NamedTuple):
    stones: UInt32[Array, "*batch 2 2"]  # for each player the top and the bottom half of the board
    turn: Int8[Array, "*batch"]  # who moves
    over: Bool[Array, "*batch"]  # neither player can move


class Othello(Game[OthelloState]):
    """Othello: enclosed stones change colour; a player who cannot move passes; most stones win."""

    name = "othello"
    version = 1
    players = PLAYERS
    drawn_as = "squares"
    num_actions = POINTS + 1
    max_moves = 2 * (POINTS - 4)  # every pass is answered by a stone
    planes_shape = (SIDE, SIDE, 3)
    num_scalars = 0
    extra_targets = (OWNERSHIP, SCORE)

    def init(self, key: RandomKey) -> OthelloState:
        dark = (1 << 3 * SIDE + 4, 1 << (4 - 4) * SIDE + 3)
        light = (1 << 3 * SIDE + 3, 1 << (4 - 4) * SIDE + 4)
        return OthelloState(jnp.array([dark, light], jnp.uint32), jnp.int8(0), jnp.bool_(False))

    def _play(self, state: OthelloState, action: Int32[Array, ""]) -> OthelloState:
        mine, theirs = self._sides(state)
        placed = one_bit(action)
        turned = reduce(Bits.__or__, (_enclosed(placed, mine, theirs, d) for d in DIRECTIONS))
        mine, theirs = mine | placed | turned, theirs & ~turned
        stones = jnp.stack([jnp.stack(mine), jnp.stack(theirs)])
        stones = jnp.where(state.turn == 0, stones, stones[::-1])
        over = ~moves_of(mine, theirs).any() & ~moves_of(theirs, mine).any()
        return OthelloState(stones, (1 - state.turn).astype(jnp.int8), over)

    def _sides(self, state: OthelloState) -> tuple[Bits, Bits]:
        first, second = Bits(*state.stones[0]), Bits(*state.stones[1])
        mine = Bits(*(jnp.where(state.turn == 0, a, b) for a, b in zip(first, second, strict=True)))
        theirs = Bits(*(jnp.where(state.turn == 0, b, a) for a, b in zip(first, second, strict=True)))
        return mine, theirs

    def legal_actions(self, state: OthelloState) -> Bool[Array, " actions"]:
        moves = moves_of(*self._sides(state))
        must_pass = ~moves.any() & ~state.over
        return jnp.append(moves.squares() & ~state.over, must_pass)

    def observe(self, state: OthelloState) -> Observation:
        mine, theirs = self._sides(state)
        planes = jnp.stack([jnp.ones(POINTS, bool), mine.squares(), theirs.squares()], -1)
        return Observation(planes.reshape(self.planes_shape), jnp.zeros(0, jnp.float32))

    def to_play(self, state: OthelloState) -> Int32[Array, ""]:
        return state.turn.astype(jnp.int32)

    def is_over(self, state: OthelloState) -> Bool[Array, ""]:
        return state.over

    def returns(self, state: OthelloState) -> Float32[Array, "2"]:
        dark = jnp.where(state.over, jnp.sign(self.score(state)), 0)
        return jnp.stack([dark, -dark])

    def score(self, state: OthelloState) -> Float32[Array, ""]:
        """Dark's stones minus light's."""
        lead = Bits(*state.stones[0]).total() - Bits(*state.stones[1]).total()
        return lead.astype(jnp.float32)

    def final_targets(self, state: OthelloState) -> dict[str, Array]:
        dark, light = (Bits(*stones).squares().astype(jnp.int8) for stones in state.stones)
        return {"ownership": (dark - light).reshape(SIDE, SIDE), "score": self.score(state)}

    def record_facts(self, state: OthelloState) -> dict[str, Array]:
        return {"score": self.score(state)}

    @cached_property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return square_symmetries(SIDE, self.num_actions)

    def render(self, state: OthelloState) -> str:
        dark, light = (np.asarray(Bits(*stones).squares()) for stones in state.stones)
        cells = np.where(dark, "x", np.where(light, "o", ".")).reshape(SIDE, SIDE).tolist()
        return render_grid(cells, LETTERS[:SIDE], "12345678", {"to play": PLAYERS[int(state.turn)]})

    def from_text(self, text: str) -> OthelloState:
        cells, notes = parse_grid(text, (SIDE, SIDE), ".xo", ("to play",), self.name)
        flat = [cell for row in cells for cell in row]
        halves = (flat[:32], flat[32:])
        stones = [[sum(1 << p for p, cell in enumerate(half) if cell == s) for half in halves] for s in "xo"]
        bits = jnp.array(stones, jnp.uint32)
        sides = Bits(*bits[0]), Bits(*bits[1])
        over = ~moves_of(*sides).any() & ~moves_of(*sides[::-1]).any()
        return OthelloState(bits, jnp.int8(player_number(notes, PLAYERS, self.name)), over)

    def _action_name(self, state: OthelloState | None, action: int) -> str:
        return "pass" if action == PASS else point_name(action, SIDE)


def moves_of(mine: Bits, theirs: Bits) -> Bits:
    """Where a stone of the first encloses stones of the second."""
    empty = ~(mine | theirs)
    ends = tuple(_moved(mine, *direction) & theirs for direction in DIRECTIONS)

    def walk(carry: tuple[tuple[Bits, ...], Bits]) -> tuple[tuple[Bits, ...], Bits]:
        """Every line of the second's stones one point further, and the moves at the end of some."""
        ends, found = carry
        beyond = tuple(_moved(end, *direction) for end, direction in zip(ends, DIRECTIONS, strict=True))
        found = reduce(Bits.__or__, (point & empty for point in beyond), found)
        return tuple(point & theirs for point in beyond), found

    def unrolled(start: tuple[tuple[Bits, ...], Bits]) -> Bits:
        return reduce(lambda carry, _: walk(carry), range(SIDE - 2), start)[1]

    def looped(start: tuple[tuple[Bits, ...], Bits]) -> Bits:
        # On the CPU XLA would repeat unrolled operations for every point that is later read from the result.
        return lax.fori_loop(0, SIDE - 2, lambda _, carry: walk(carry), start)[1]

    nothing = mine & theirs
    return lax.platform_dependent((ends, nothing), cpu=looped, default=unrolled)


def _enclosed(placed: Bits, mine: Bits, theirs: Bits, direction: tuple[int, int]) -> Bits:
    """The stones of the second between `placed` and a stone of the first, in one direction."""
    line = _moved(placed, *direction) & theirs
    for _ in range(SIDE - 3):
        line = line | (_moved(line, *direction) & theirs)
    return line.keep((_moved(line, *direction) & mine).any())
