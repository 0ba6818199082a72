"""Go by the book: stones in a dict, flood fills, and the set of every earlier situation."""

from collections.abc import Iterator
from typing import NamedTuple

Point = tuple[int, int]  # (row, col); row 0 is the top row, col 0 the left column
Board = dict[Point, int]  # a stone's owner, 0 Black or 1 White; an empty point has no entry

BLACK, WHITE = 0, 1
KO_RULES = ("simple", "positional", "situational")


class Outcome(NamedTuple):
    """What a stone does: the board afterwards, the enemy stones and the own stones it took off."""

    board: Board
    captured: set[Point]
    suicides: set[Point]


class Go:
    """One game of Go with area scoring. Black is player 0 and begins; action row*size+col, pass size*size.

    No attribute is changed in place, so `copy.copy(game)` is an independent game.
    """

    def __init__(
        self,
        size: int,
        komi: float = 7.0,
        ko: str = "positional",
        suicide: bool = False,
        max_moves: int | None = None,
    ) -> None:
        if ko not in KO_RULES:
            raise ValueError(f"ko: expected one of {KO_RULES}, got {ko!r}")
        self.size = size
        self.komi = komi
        self.ko = ko
        self.suicide = suicide
        self.max_moves = max(2 * size * size, 50) if max_moves is None else max_moves
        self.pass_action = size * size
        self.points = [(row, col) for row in range(size) for col in range(size)]
        self.neighbours = {
            (row, col): [
                point
                for point in [(row - 1, col), (row + 1, col), (row, col - 1), (row, col + 1)]
                if point in self.points
            ]
            for row, col in self.points
        }
        self.board: Board = {}
        self.to_play = BLACK
        self.moves = 0
        self.last_moves: list[int] = []  # every action of the game, most recent first
        self.ko_point: Point | None = None  # where the side to move may not retake a simple ko
        self.seen = frozenset({(position(self.board), BLACK)})  # every (position, side to move) so far

    @property
    def over(self) -> bool:
        """Two passes in a row, or the move limit."""
        return self.last_moves[:2] == [self.pass_action] * 2 or self.moves >= self.max_moves

    def legal_actions(self) -> list[bool]:
        """[size*size + 1] which actions the side to move has; none once the game is over."""
        return [self.verdict(point) == "legal" for point in self.points] + [not self.over]

    def ko_banned(self) -> set[Point]:
        """The points that only the ko rule forbids to the side to move."""
        return {point for point in self.points if self.verdict(point) == "ko"}

    def play(self, action: int) -> None:
        """Make the move, or raise ValueError and leave the game as it was."""
        if self.over or not 0 <= action <= self.pass_action:
            raise ValueError(f"action {action} is illegal: the game is over or there is no such action")
        if action == self.pass_action:
            self.ko_point = None
        else:
            point = self.points[action]
            if self.verdict(point) != "legal":
                raise ValueError(f"action {action} (row, col = {point}) is illegal: {self.verdict(point)}")
            outcome = self._outcome(point)
            self.board = outcome.board
            self.ko_point = self._ko_point_after(point, outcome)
        self.to_play = 1 - self.to_play
        self.moves += 1
        self.last_moves = [action, *self.last_moves]
        self.seen = self.seen | {(position(self.board), self.to_play)}

    def liberties(self, point: Point) -> int:
        """The number of empty points next to the chain at `point`; 0 when there is no stone."""
        if point not in self.board:
            return 0
        return len(self._liberties(self.board, set(self._connected(self.board, point))))

    def ownership(self) -> list[list[int]]:
        """[size][size] +1 Black's, -1 White's, 0 neither's; an empty region is his whom alone it reaches."""
        owner = [[0] * self.size for _ in range(self.size)]
        for row, col in self.board:
            owner[row][col] = self._owner({self.board[row, col]})
        empty = set(self.points) - set(self.board)
        while empty:
            region = set(self._connected(self.board, empty.pop()))
            empty -= region
            reached = {near for point in region for near in self.neighbours[point] if near in self.board}
            for row, col in region:
                owner[row][col] = self._owner({self.board[stone] for stone in reached})
        return owner

    def score(self) -> float:
        """Black's area minus White's area minus komi (Tromp-Taylor: every stone on the board is alive)."""
        return sum(sum(row) for row in self.ownership()) - self.komi

    def returns(self) -> tuple[int, int]:
        """(black, white): +1 won, -1 lost, 0 drawn or still running."""
        if not self.over or self.score() == 0:
            return (0, 0)
        return (1, -1) if self.score() > 0 else (-1, 1)

    def _owner(self, colours: set[int]) -> int:
        """+1 for Black alone, -1 for White alone, 0 for both or nobody."""
        return (colours == {BLACK}) - (colours == {WHITE})

    def verdict(self, point: Point) -> str:
        """ "legal", or the rule that forbids the point: "over", "occupied", "suicide" or "ko"."""
        if self.over:
            return "over"
        if point in self.board:
            return "occupied"
        outcome = self._outcome(point)
        if len(outcome.suicides) == 1 or (outcome.suicides and not self.suicide):
            return "suicide"
        return "ko" if self._breaks_ko(point, outcome) else "legal"

    def _breaks_ko(self, point: Point, outcome: Outcome) -> bool:
        if self.ko == "simple":
            return point == self.ko_point
        after = position(outcome.board)
        if self.ko == "positional":
            return (after, BLACK) in self.seen or (after, WHITE) in self.seen
        return (after, 1 - self.to_play) in self.seen

    def _outcome(self, point: Point) -> Outcome:
        """What happens when the side to move puts a stone on an empty point, whether or not it may."""
        board = {**self.board, point: self.to_play}
        captured: set[Point] = set()
        for near in self.neighbours[point]:
            if board.get(near) == 1 - self.to_play and not self._has_liberty(board, near):
                captured |= set(self._connected(board, near))
        for stone in captured:
            del board[stone]
        # The enemy is taken off first: only then can the own chain be without liberties.
        suicides = set() if self._has_liberty(board, point) else set(self._connected(board, point))
        for stone in suicides:
            del board[stone]
        return Outcome(board, captured, suicides)

    def _ko_point_after(self, point: Point, outcome: Outcome) -> Point | None:
        """The point a simple ko bans after `point` was played: a lone stone took one and is in atari."""
        chain = set(self._connected(outcome.board, point))
        liberties = self._liberties(outcome.board, chain)
        if len(outcome.captured) == len(chain) == len(liberties) == 1:
            return liberties.pop()
        return None

    def _connected(self, board: Board, start: Point) -> Iterator[Point]:
        """Flood fill: every point joined to `start` that holds what `start` holds (Black, White, nothing)."""
        found, waiting = {start}, [start]
        while waiting:
            point = waiting.pop()
            yield point
            for near in self.neighbours[point]:
                if near not in found and board.get(near) == board.get(start):
                    found.add(near)
                    waiting.append(near)

    def _liberties(self, board: Board, chain: set[Point]) -> set[Point]:
        return {near for stone in chain for near in self.neighbours[stone] if near not in board}

    def _has_liberty(self, board: Board, stone: Point) -> bool:
        # The fill is lazy and stops at the first liberty: that is what makes 19x19 bearable.
        chain = self._connected(board, stone)
        return any(near not in board for own in chain for near in self.neighbours[own])


def position(board: Board) -> frozenset[tuple[Point, int]]:
    """The whole-board position, as something that can be kept in a set."""
    return frozenset(board.items())
