"""Hex by the book: flood fill from one side and see whether it reaches the other."""

Point = tuple[int, int]  # (row, col), row 0 is the top row


class Hex:
    """One game of Hex. Player 0 joins the top row to the bottom row, player 1 the left column to the right.

    Action row*size+col. With `swap` there is one more action, size*size, which only the second player's first
    move may be: the first stone, on (row, col), comes off and player 1 gets a stone on (col, row).

    No attribute is changed in place, so `copy.copy(game)` is an independent game.
    """

    def __init__(self, size: int, swap: bool = False) -> None:
        self.size = size
        self.swap = swap
        self.swap_action = size * size
        self.points = [(row, col) for row in range(size) for col in range(size)]
        self.board: dict[Point, int] = {}
        self.to_play = 0
        self.moves = 0

    @property
    def over(self) -> bool:
        """Somebody has joined his two sides."""
        return self._connects(0) or self._connects(1)

    def legal_actions(self) -> list[bool]:
        """[size*size, and one more with swap] what the side to move may do; nothing once the game is over."""
        over = self.over
        placements = [not over and point not in self.board for point in self.points]
        return [*placements, not over and self.moves == 1] if self.swap else placements

    def play(self, action: int) -> None:
        """Make the move, or raise ValueError and leave the game as it was."""
        legal = self.legal_actions()
        if not 0 <= action < len(legal) or not legal[action]:
            raise ValueError(f"action {action} is illegal")
        if action == self.swap_action:
            ((row, col),) = self.board
            self.board = {(col, row): 1}
        else:
            self.board = {**self.board, self.points[action]: self.to_play}
        self.to_play = 1 - self.to_play
        self.moves += 1

    def returns(self) -> tuple[int, int]:
        """(first, second): +1 for the one who joined his sides, -1 for the other, zeros while running."""
        if self._connects(0):
            return (1, -1)
        return (-1, 1) if self._connects(1) else (0, 0)

    def _connects(self, player: int) -> bool:
        """Whether a chain of the player's stones reaches from his first side to his last."""
        along = player  # player 0 travels along rows (index 0 of a point), player 1 along columns (index 1)
        reached = {point for point in self.points if point[along] == 0 and self.board.get(point) == player}
        waiting = list(reached)
        while waiting:
            for near in neighbours(waiting.pop()):
                if near not in reached and self.board.get(near) == player:
                    reached.add(near)
                    waiting.append(near)
        return any(point[along] == self.size - 1 for point in reached)


def neighbours(point: Point) -> list[Point]:
    """The six cells around a cell, some of which may lie off the board."""
    row, col = point
    return [
        (row, col - 1),
        (row, col + 1),
        (row - 1, col),
        (row + 1, col),
        (row - 1, col + 1),
        (row + 1, col - 1),
    ]
