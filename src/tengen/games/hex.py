"""Hex on 3x3 to 13x13, with or without the swap rule. See docs/games/hex.md."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int8, Int16, Int32

from tengen.games.core import Game, Observation, RandomKey, Symmetry, board_symmetry, identity
from tengen.games.targets import OWNERSHIP
from tengen.games.text import LETTERS, parse_grid, player_number, point_name, render_grid
from tengen.schema import setting

Chains = Int16[Array, " points"]
PLAYERS = ("x", "o")
AROUND = ((0, -1), (0, 1), (-1, 0), (1, 0), (-1, 1), (1, -1))


@dataclass(frozen=True)
class HexOptions:
    size: int = setting(11, "points along one side of the board", low=3, high=13)
    swap: bool = setting(False, "may the second player take over the first stone, mirrored")


class HexState(NamedTuple):
    """A position; points are numbered row by row from the top left."""

    chains: Int16[Array, "*batch points"]  # 0 if empty, else the chain's number: positive for player 0, else negative
    moves: Int16[Array, "*batch"]  # moves played
    winner: Int8[Array, "*batch"]  # who has connected both edges, or -1


class Hex(Game[HexState]):
    """Hex: player 0 connects top and bottom, player 1 left and right.

    A chain's number is one of its stones (counted from one), or points + 1 once it touches the player's first edge (top
    or left), or points + 2 once it touches the other one: a chain that gets both has won.
    """

    name = "hex"
    version = 1
    players = PLAYERS
    drawn_as = "hexagons"
    Options: ClassVar[type] = HexOptions
    extra_targets = (OWNERSHIP,)

    def __init__(self, options: HexOptions) -> None:
        self.options = options
        self.size = options.size
        self.points = self.size**2
        self.num_actions = self.points + options.swap
        self.max_moves = self.points + options.swap
        self.planes_shape = (self.size, self.size, 3)
        self.num_scalars = 2

    def init(self, key: RandomKey) -> HexState:
        return HexState(jnp.zeros(self.points, jnp.int16), jnp.int16(0), jnp.int8(-1))

    def _play(self, state: HexState, action: Int32[Array, ""]) -> HexState:
        turn = self.to_play(state)
        chains, won = self._place(state.chains, action, turn)
        if self.options.swap:
            swapped = action == self.points
            chains = jnp.where(swapped, self._mirrored(state.chains), chains)
            won &= ~swapped
        winner = jnp.where(won, turn, -1).astype(jnp.int8)
        return HexState(chains, state.moves + jnp.int16(1), winner)

    def _place(self, chains: Chains, action: Int32[Array, ""], turn: Int32[Array, ""]) -> tuple[Chains, Array]:
        """The chains with one more stone, and whether it connects the player's edges."""
        size, sign = self.size, 1 - 2 * turn
        first_edge, second_edge = self.points + 1, self.points + 2
        row, column = action // size, action % size
        steps = np.array(AROUND)
        rows, columns = row + steps[:, 0], column + steps[:, 1]
        inside = (rows >= 0) & (rows < size) & (columns >= 0) & (columns < size)
        beside = chains[jnp.clip(rows * size + columns, 0, self.points - 1)] * sign
        beside = jnp.where(inside & (beside > 0), beside, 0)  # [6]: numbers of own chains
        across = jnp.where(turn == 0, row, column)
        first = (across == 0) | (beside == first_edge).any()
        second = (across == size - 1) | (beside == second_edge).any()
        number = jnp.where(first, first_edge, jnp.where(second, second_edge, action + 1))
        mine = chains * sign
        joined = (mine[:, None] == beside[None, :]).any(1) & (mine > 0)
        joined |= jnp.arange(self.points) == action
        return jnp.where(joined, (number * sign).astype(jnp.int16), chains), first & second

    def _mirrored(self, chains: Chains) -> Chains:
        """The first stone as the second player's, on the point mirrored in the long diagonal."""
        edge = jnp.where(jnp.abs(chains) > self.points, chains, 0)
        mirrored = edge.reshape(self.size, self.size).T.reshape(-1)
        there = (chains != 0).reshape(self.size, self.size).T.reshape(-1)
        number = jnp.where(mirrored != 0, mirrored, jnp.arange(1, self.points + 1, dtype=jnp.int16))
        return jnp.where(there, -number, 0).astype(jnp.int16)

    def legal_actions(self, state: HexState) -> Bool[Array, " actions"]:
        running = ~self.is_over(state)
        empty = (state.chains == 0) & running
        return jnp.append(empty, (state.moves == 1) & running) if self.options.swap else empty

    def observe(self, state: HexState) -> Observation:
        turn = self.to_play(state)
        mine = state.chains * (1 - 2 * turn)
        planes = jnp.stack([jnp.ones(self.points, bool), mine > 0, mine < 0], -1)
        may_swap = (state.moves == 1) if self.options.swap else jnp.bool_(False)
        scalars = jnp.stack([turn == 0, may_swap]).astype(jnp.float32)
        return Observation(planes.reshape(self.planes_shape), scalars)

    def to_play(self, state: HexState) -> Int32[Array, ""]:
        return (state.moves & 1).astype(jnp.int32)

    def is_over(self, state: HexState) -> Bool[Array, ""]:
        return state.winner >= 0

    def returns(self, state: HexState) -> Float32[Array, "2"]:
        won = (jnp.arange(2) == state.winner).astype(jnp.float32)
        return won - won[::-1]

    def final_targets(self, state: HexState) -> dict[str, Array]:
        """A stone owns its point. Empty points belong to nobody: filling them would not change who has connected."""
        return {"ownership": jnp.sign(state.chains).astype(jnp.int8).reshape(self.size, self.size)}

    @cached_property
    def symmetries(self) -> tuple[Symmetry, ...]:
        shape = (self.size, self.size)
        half_turn = board_symmetry("rotate 180", lambda x: x[::-1, ::-1], shape, self.num_actions)
        return identity(self.num_actions), half_turn

    def render(self, state: HexState) -> str:
        signs = np.sign(np.asarray(state.chains)).reshape(self.size, self.size)
        cells = [[".xo"[sign] for sign in row] for row in signs]
        rows = [str(r + 1) for r in range(self.size)]
        notes = {"to play": PLAYERS[int(self.to_play(state))], "moves": str(int(state.moves))}
        return render_grid(cells, LETTERS[: self.size], rows, notes, slant=1)

    def from_text(self, text: str) -> HexState:
        cells, notes = parse_grid(text, (self.size, self.size), ".xo", ("to play", "moves"), self.name)
        turn = player_number(notes, PLAYERS, self.name)
        flat = [cell for row in cells for cell in row]
        first, second = flat.count("x"), flat.count("o")
        moves = int(notes["moves"]) if notes["moves"].isdecimal() and len(notes["moves"]) < 5 else -1
        swapped = self.options.swap and moves >= 2 and second - first == 1 - turn
        if moves % 2 != turn or moves != first + second + swapped or (not swapped and first - second != turn):
            raise ValueError(f"hex: {first} and {second} stones do not go with moves: {notes['moves']}")
        chains, winner = jnp.zeros(self.points, jnp.int16), -1
        for point, cell in enumerate(flat):
            if cell != ".":
                chains, won = self._place(chains, jnp.int32(point), jnp.int32(PLAYERS.index(cell)))
                winner = PLAYERS.index(cell) if won else winner
        return HexState(chains, jnp.int16(moves), jnp.int8(winner))

    def _action_name(self, state: HexState | None, action: int) -> str:
        return "swap" if action == self.points else point_name(action, self.size)
