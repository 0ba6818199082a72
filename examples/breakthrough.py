"""Breakthrough, a game that Tengen does not ship with. docs/write-a-game.md explains this file.

    cd examples
    tengen games breakthrough:Breakthrough
    tengen run breakthrough.yaml

Each player has two rows of pieces. A piece moves one square forward, straight or diagonally; it captures diagonally.
The first piece on the far side wins, and so does capturing everything.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from tengen.games.core import Game, Observation, Symmetry, identity
from tengen.games.targets import Target
from tengen.games.text import LETTERS, parse_grid, player_number, render_grid
from tengen.schema import setting

WAYS = 3  # diagonally to the left, straight, diagonally to the right


@dataclass(frozen=True)
class BreakthroughOptions:
    """Options of Breakthrough: `size` in the section `game` of a configuration."""

    size: int = setting(6, "squares along one side", low=4, high=12)


class BreakthroughState(NamedTuple):
    """A position. White (player 0) moves up, to row 0."""

    board: jnp.ndarray  # Int8[size, size]: 1 White, -1 Black, 0 empty
    turn: jnp.ndarray  # Int8[]: who moves
    winner: jnp.ndarray  # Int8[]: 0 or 1, or -1 while the game runs


class Breakthrough(Game[BreakthroughState]):
    """Breakthrough: the first piece on the far side wins."""

    name = "breakthrough"
    version = 1
    Options = BreakthroughOptions
    players = ("white", "black")
    num_scalars = 0
    extra_targets = (Target("pieces", "number", loss="huber", weight=0.02),)

    def __init__(self, options):
        super().__init__(options)
        self.size = options.size
        self.num_actions = self.size * self.size * WAYS
        # Every move brings a piece one row forward, and none goes further than the far side.
        self.max_moves = 2 * self.size * (2 * self.size - 3)
        self.planes_shape = (self.size, self.size, 3)

    def init(self, key):
        board = jnp.zeros((self.size, self.size), jnp.int8).at[:2].set(-1).at[-2:].set(1)
        return BreakthroughState(board, jnp.int8(0), jnp.int8(-1))

    def _play(self, state, action):
        row, column = action // WAYS // self.size, action // WAYS % self.size
        there = column + action % WAYS - 1
        board = self._seen(state).at[row, column].set(0).at[row - 1, there].set(1)
        won = (row == 1) | ~(board < 0).any()
        board = jnp.where(state.turn == 0, board, -board[::-1])
        winner = jnp.where(won, state.turn, -1)
        return BreakthroughState(board, (1 - state.turn).astype(jnp.int8), winner.astype(jnp.int8))

    def _seen(self, state):
        """The board from the side of the player to move, whose pieces are 1 and move up."""
        return jnp.where(state.turn == 0, state.board, -state.board[::-1])

    def legal_actions(self, state):
        board = self._seen(state)
        # What lies ahead in each of the three ways; beyond the edge is as good as an own piece.
        padded = jnp.pad(board, ((1, 0), (1, 1)), constant_values=1)
        ahead = jnp.stack([padded[:-1, way : way + self.size] for way in range(WAYS)], -1)
        free = jnp.where(jnp.arange(WAYS) == 1, ahead == 0, ahead <= 0)
        return ((board == 1)[..., None] & free).reshape(-1) & ~self.is_over(state)

    def observe(self, state):
        board = self._seen(state)
        planes = jnp.stack([jnp.ones_like(board, bool), board == 1, board == -1], -1)
        return Observation(planes, jnp.zeros(0, jnp.float32))

    def to_play(self, state):
        return state.turn.astype(jnp.int32)

    def is_over(self, state):
        return state.winner >= 0

    def returns(self, state):
        won = (jnp.arange(2) == state.winner).astype(jnp.float32)
        return won - won[::-1]

    def final_targets(self, state):
        """By how many pieces White is ahead."""
        return {"pieces": state.board.sum(dtype=jnp.float32)}

    @cached_property
    def symmetries(self):
        numbers = np.arange(self.num_actions, dtype=np.int32).reshape(self.size, self.size, WAYS)
        mirrored = numbers[:, ::-1, ::-1].reshape(-1)
        mirror = Symmetry("mirror", lambda x: x[:, ::-1], lambda x: x, np.stack([mirrored, mirrored]))
        return identity(self.num_actions), mirror

    # For people

    def render(self, state):
        cells = [[".wb"[piece] for piece in row] for row in np.asarray(state.board).tolist()]
        rows = [str(self.size - row) for row in range(self.size)]
        return render_grid(cells, LETTERS[: self.size], rows, {"to play": self.players[int(state.turn)]})

    def from_text(self, text):
        cells, notes = parse_grid(text, (self.size, self.size), ".wb", ("to play",), self.name)
        board = np.array([[{".": 0, "w": 1, "b": -1}[cell] for cell in row] for row in cells], np.int8)
        white, black = bool((board[0] == 1).any()), bool((board[-1] == -1).any())
        white, black = white or not (board == -1).any(), black or not (board == 1).any()
        if white and black:
            raise ValueError(f"{self.name}: both players have won")
        winner = 0 if white else 1 if black else -1
        turn = player_number(notes, self.players, self.name)
        if winner == turn:
            raise ValueError(f"{self.name}: {self.players[turn]} has won and cannot be to play")
        return BreakthroughState(jnp.asarray(board), jnp.int8(turn), jnp.int8(winner))

    def _known_action(self, state, action):
        point, way = divmod(action, WAYS)
        return point >= self.size and 0 <= point % self.size + way - 1 < self.size

    def _action_name(self, state, action):
        point, way = divmod(action, WAYS)
        row, column = divmod(point, self.size)
        up = int(state.turn) == 0
        number, step = (self.size - row, 1) if up else (row + 1, -1)
        return f"{LETTERS[column]}{number}{LETTERS[column + way - 1]}{number + step}"
