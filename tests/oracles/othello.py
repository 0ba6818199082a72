"""Othello by the book: walk each of the eight directions from the new disc."""

Point = tuple[int, int]  # (row, col), row 0 is the top row

DARK, LIGHT = 0, 1
SIZE = 8
PASS = SIZE * SIZE
POINTS = [(row, col) for row in range(SIZE) for col in range(SIZE)]
DIRECTIONS = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]


class Othello:
    """One game of Othello. Dark is player 0 and begins; action row*8+col, pass 64 (only when forced).

    No attribute is changed in place, so `copy.copy(game)` is an independent game.
    """

    def __init__(self) -> None:
        self.board: dict[Point, int] = {(3, 4): DARK, (4, 3): DARK, (3, 3): LIGHT, (4, 4): LIGHT}
        self.to_play = DARK
        self.moves = 0

    @property
    def over(self) -> bool:
        """Neither side has a disc to place."""
        return not self._can_place(DARK) and not self._can_place(LIGHT)

    def legal_actions(self) -> list[bool]:
        """[65] which actions the side to move has: a placement that flips, else the forced pass."""
        placements = [bool(self._flips(self.to_play, point)) for point in POINTS]
        forced_pass = not any(placements) and self._can_place(1 - self.to_play)
        return [*placements, forced_pass]

    def play(self, action: int) -> None:
        """Make the move, or raise ValueError and leave the game as it was."""
        if not 0 <= action <= PASS or not self.legal_actions()[action]:
            raise ValueError(f"action {action} is illegal")
        if action != PASS:
            point = POINTS[action]
            turned = [point, *self._flips(self.to_play, point)]
            self.board = {**self.board, **dict.fromkeys(turned, self.to_play)}
        self.to_play = 1 - self.to_play
        self.moves += 1

    def returns(self) -> tuple[int, int]:
        """(dark, light): +1 for the majority of discs, -1 for the minority, 0 equal or still running."""
        discs = list(self.board.values())
        lead = discs.count(DARK) - discs.count(LIGHT)
        if not self.over or lead == 0:
            return (0, 0)
        return (1, -1) if lead > 0 else (-1, 1)

    def _can_place(self, player: int) -> bool:
        return any(self._flips(player, point) for point in POINTS)

    def _flips(self, player: int, point: Point) -> list[Point]:
        """The enemy discs that `player` turns by a disc on `point`; none when the point is taken."""
        if point in self.board:
            return []
        return [disc for direction in DIRECTIONS for disc in self._flips_along(player, point, direction)]

    def _flips_along(self, player: int, point: Point, direction: Point) -> list[Point]:
        """The unbroken run of enemy discs next to `point` in one direction, if an own disc closes it."""
        (row, col), (down, right) = point, direction
        run: list[Point] = []
        while True:
            row, col = row + down, col + right
            owner = self.board.get((row, col))
            if owner is None:  # an empty point, or over the edge
                return []
            if owner == player:
                return run
            run.append((row, col))
