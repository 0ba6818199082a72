"""A position as it lies on a board, for those who draw it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tengen.games.core import Game
from tengen.games.text import GO_LETTERS, LETTERS

Kind = Literal["points", "squares", "marks", "holes", "hexagons"]
"""Stones on crossings (Go), on squares (Othello), crosses and rings (tic-tac-toe), discs that fall (connect four)."""

EMPTY = -1
_KINDS: dict[str, Kind] = {
    "go": "points",
    "othello": "squares",
    "tic_tac_toe": "marks",
    "connect_four": "holes",
    "hex": "hexagons",
}
_SIGNS = {"x": 0, "o": 1, ".": EMPTY}
Place = tuple[int, int]
"""Row from the top and column from the left."""


@dataclass(frozen=True)
class BoardView:
    """What is where."""

    kind: Kind
    stones: np.ndarray  # Int8[H, W]: the player whose stone it is, or EMPTY
    columns: tuple[str, ...]  # names, from the left
    rows: tuple[str, ...]  # from the top

    @property
    def shape(self) -> tuple[int, int]:
        height, width = self.stones.shape
        return height, width


def has_board(game: Game) -> bool:
    """Whether positions of the game can be drawn."""
    return game.name in _KINDS


def board_of(game: Game, state: Any) -> BoardView:
    """The board of a position. ValueError if the game has none that can be drawn."""
    if not has_board(game):
        raise ValueError(f"{game.name} has no board that can be drawn")
    height, width, _ = game.planes_shape
    # What the game prints, since that needs no compiling: a line of columns, then rows that begin with their names.
    printed = [line.split()[1:] for line in game.render(state).splitlines()[1 : height + 1]]
    stones = np.array([[_SIGNS[cell.lower()] for cell in row] for row in printed], np.int8)
    from_below = game.name in ("go", "connect_four")
    rows = [str(height - row if from_below else row + 1) for row in range(height)]
    if game.name == "connect_four":
        columns: Sequence[str] = [str(column + 1) for column in range(width)]
    else:
        columns = (GO_LETTERS if game.name == "go" else LETTERS)[:width]
    return BoardView(_KINDS[game.name], stones, tuple(columns), tuple(rows))


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
