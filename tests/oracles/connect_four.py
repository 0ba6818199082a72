"""Connect Four by the book: drop a disc, look for four in a row."""

Point = tuple[int, int]  # (row, col), row 0 is the top row

ROWS, COLUMNS = 6, 7
DIRECTIONS = [(0, 1), (1, 0), (1, 1), (1, -1)]
LINES = [
    [(row + step * down, col + step * right) for step in range(4)]
    for row in range(ROWS)
    for col in range(COLUMNS)
    for down, right in DIRECTIONS
    if row + 3 * down < ROWS and 0 <= col + 3 * right < COLUMNS
]


class ConnectFour:
    """One game on 6 rows and 7 columns. An action is the column, 0 to 6; player 0 begins.

    No attribute is changed in place, so `copy.copy(game)` is an independent game.
    """

    def __init__(self) -> None:
        self.board: dict[Point, int] = {}
        self.to_play = 0
        self.moves = 0

    @property
    def over(self) -> bool:
        """Somebody has four in a row, or the board is full."""
        return self._has_four(0) or self._has_four(1) or len(self.board) == ROWS * COLUMNS

    def legal_actions(self) -> list[bool]:
        """[7] the columns with room; none once the game is over."""
        over = self.over
        return [not over and (0, col) not in self.board for col in range(COLUMNS)]

    def play(self, action: int) -> None:
        """Make the move, or raise ValueError and leave the game as it was."""
        if not 0 <= action < COLUMNS or not self.legal_actions()[action]:
            raise ValueError(f"action {action} is illegal")
        landing = max(row for row in range(ROWS) if (row, action) not in self.board)
        self.board = {**self.board, (landing, action): self.to_play}
        self.to_play = 1 - self.to_play
        self.moves += 1

    def returns(self) -> tuple[int, int]:
        """(first, second): +1 for four in a row, -1 for the other, 0 drawn or still running."""
        if self._has_four(0):
            return (1, -1)
        return (-1, 1) if self._has_four(1) else (0, 0)

    def _has_four(self, player: int) -> bool:
        return any(all(self.board.get(point) == player for point in line) for line in LINES)
