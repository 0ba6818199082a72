"""A position as it lies on a board, for those who draw it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tengen.games.core import BoardKind, Game

EMPTY = -1
_SIGNS = {"x": 0, "o": 1, ".": EMPTY}
Place = tuple[int, int]
"""Row from the top and column from the left."""


@dataclass(frozen=True)
class BoardView:
    kind: BoardKind
    stones: np.ndarray  # Int8[H, W]: the player whose stone it is, or EMPTY
    columns: tuple[str, ...]  # names, from the left
    rows: tuple[str, ...]  # from the top

    @property
    def shape(self) -> tuple[int, int]:
        height, width = self.stones.shape
        return height, width


def has_board(game: Game) -> bool:
    """Whether positions of the game can be drawn."""
    return game.drawn_as is not None


def board_of(game: Game, state: Any) -> BoardView:
    """The board of a position. ValueError if the game has none that can be drawn."""
    if game.drawn_as is None:
        raise ValueError(f"{game.name} has no board that can be drawn")
    # What the game prints, since that needs no compiling: a line of columns, then rows that begin with their names.
    columns, *lines = (line.split() for line in game.render(state).splitlines()[: game.planes_shape[0] + 1])
    stones = np.array([[_SIGNS[cell.lower()] for cell in cells] for _, *cells in lines], np.int8)
    return BoardView(game.drawn_as, stones, tuple(columns), tuple(row for row, *_ in lines))


def place_of(board: BoardView, action: int) -> Place | None:
    """Where an action puts its stone, given the board; None if it puts none (pass, swap, a full column)."""
    height, width = board.shape
    if board.kind == "holes":
        free = np.flatnonzero(board.stones[:, action] == EMPTY)
        return (int(free[-1]), action) if len(free) else None
    row, column = divmod(action, width)
    return (row, column) if row < height else None


def player_name(game: Game, player: int) -> str:
    """What the rules call a player. Black and White are names, and begin with a capital letter."""
    name = game.players[player]
    return name.capitalize() if name in ("black", "white") else name
