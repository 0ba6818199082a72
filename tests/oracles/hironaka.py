"""Hironaka's polyhedra game (the basic one) in exact fractions; a removed point is None in its slot."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

Vector = tuple[Fraction, ...]
Points = list[Vector | None]


def host_subsets(d: int) -> list[tuple[int, ...]]:
    """The subsets of the d axes with at least two elements, in the order of the host's action ids."""
    subsets = [axes for count in range(2, d + 1) for axes in combinations(range(d), count)]
    return sorted(subsets, key=lambda axes: sum(2**axis for axis in axes))


def shift(points: Points, subset: Sequence[int], axis: int) -> Points:
    """Replace coordinate `axis` (one of the subset) of every live point by its sum over the subset."""
    return [None if point is None else (*point[:axis], sum_over(point, subset), *point[axis + 1 :]) for point in points]


def sum_over(point: Vector, subset: Sequence[int]) -> Fraction:
    """The sum of the chosen coordinates."""
    return sum((point[axis] for axis in subset), Fraction(0))


def reduce(points: Points) -> Points:
    """Remove each point that another one is below or equal to everywhere; of equal points the first stays.

    This is domination, not the convex hull: (1, 1) survives between (0, 2) and (2, 0).
    """
    return [
        None if point is None or any(removes(points, other, slot) for other in range(len(points))) else point
        for slot, point in enumerate(points)
    ]


def removes(points: Points, other: int, slot: int) -> bool:
    """Whether the point in slot `other` is a reason to remove the point in slot `slot`."""
    above, below = points[slot], points[other]
    if above is None or below is None or other == slot:
        return False
    if below == above:
        return other < slot
    return all(low <= high for low, high in zip(below, above, strict=True))


def reposition(points: Points) -> Points:
    """Subtract from each coordinate its least value over the live points."""
    live = [point for point in points if point is not None]
    least = [min(column) for column in zip(*live, strict=True)]
    return [
        None if point is None else tuple(value - low for value, low in zip(point, least, strict=True))
        for point in points
    ]


def rescale(points: Points) -> Points:
    """Divide every coordinate by the largest one of the whole set; unchanged when that is 0."""
    largest = max((value for point in points if point is not None for value in point), default=Fraction(0))
    if largest == 0:
        return points
    return [None if point is None else tuple(value / largest for value in point) for point in points]


class Hironaka:
    """One game: the host (player 0) names a subset of the axes, the agent (player 1) one axis inside it.

    The points are taken as given; reduce them first when they may not be. The host's action is an index into
    `host_subsets(d)`, the agent's is the axis. Each choice of either counts as one move.

    No attribute is changed in place, so `copy.copy(game)` is an independent game.
    """

    def __init__(
        self,
        points: Sequence[Sequence[int | Fraction] | None],
        max_moves: int,
        reposition: bool = False,
        rescale: bool = False,
    ) -> None:
        self.points: Points = [None if point is None else tuple(Fraction(value) for value in point) for point in points]
        self.dimension = max(len(point) for point in points if point is not None)
        self.subsets = host_subsets(self.dimension)
        self.max_moves = max_moves
        self.repositions = reposition
        self.rescales = rescale
        self.chosen: tuple[int, ...] = ()  # the host's subset, while the agent is to play
        self.to_play = 0
        self.moves = 0

    @property
    def over(self) -> bool:
        """At most one point is left, or the move limit is reached (even between host and agent)."""
        return sum(point is not None for point in self.points) <= 1 or self.moves >= self.max_moves

    def legal_actions(self) -> list[bool]:
        """[max(2^d - d - 1, d)] what the side to move may choose; nothing once the game is over."""
        allowed = range(len(self.subsets)) if self.to_play == 0 else self.chosen
        width = max(len(self.subsets), self.dimension)
        return [not self.over and action in allowed for action in range(width)]

    def play(self, action: int) -> None:
        """Make the choice, or raise ValueError and leave the game as it was."""
        legal = self.legal_actions()
        if not 0 <= action < len(legal) or not legal[action]:
            raise ValueError(f"action {action} is illegal for player {self.to_play}")
        if self.to_play == 0:
            self.chosen = self.subsets[action]
        else:
            points = shift(self.points, self.chosen, action)
            points = reposition(points) if self.repositions else points
            points = reduce(points)
            self.points = rescale(points) if self.rescales else points
            self.chosen = ()
        self.to_play = 1 - self.to_play
        self.moves += 1

    def returns(self) -> tuple[float, float]:
        """(h, -h): h falls in a straight line from +1 (over at once) to -1 (the limit); 0 while running."""
        if not self.over:
            return (0.0, 0.0)
        host = 1 - 2 * self.moves / self.max_moves
        return (host, -host)
