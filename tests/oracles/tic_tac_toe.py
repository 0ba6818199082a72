"""Tic-tac-toe by the book: three in a row out of the eight lines."""

from copy import copy
from typing import Self

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


class TicTacToe:
    """One game of tic-tac-toe. Action row*3+col; player 0 begins.

    No attribute is changed in place, so `copy.copy(game)` is an independent game.
    """

    def __init__(self) -> None:
        self.board: dict[int, int] = {}  # action -> the player who made it
        self.to_play = 0
        self.moves = 0

    @property
    def over(self) -> bool:
        """Somebody has three in a row, or the board is full."""
        return self._has_three(0) or self._has_three(1) or len(self.board) == 9

    def legal_actions(self) -> list[bool]:
        """[9] the empty cells; none once the game is over."""
        over = self.over
        return [not over and cell not in self.board for cell in range(9)]

    def play(self, action: int) -> None:
        """Make the move, or raise ValueError and leave the game as it was."""
        if not 0 <= action < 9 or not self.legal_actions()[action]:
            raise ValueError(f"action {action} is illegal")
        self.board = {**self.board, action: self.to_play}
        self.to_play = 1 - self.to_play
        self.moves += 1

    def replies(self) -> dict[int, Self]:
        """The game after each legal action."""
        found = {action: copy(self) for action, legal in enumerate(self.legal_actions()) if legal}
        for action, later in found.items():
            later.play(action)
        return found

    def returns(self) -> tuple[int, int]:
        """(first, second): +1 for three in a row, -1 for the other, 0 drawn or still running."""
        if self._has_three(0):
            return (1, -1)
        return (-1, 1) if self._has_three(1) else (0, 0)

    def _has_three(self, player: int) -> bool:
        return any(all(self.board.get(cell) == player for cell in line) for line in LINES)
