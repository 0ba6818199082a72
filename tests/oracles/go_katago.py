"""KataGo's inputs (version 7) by the book, on the slow Go of this folder: area scoring, no tax, no button.

Ladders are read with plain recursion on dictionaries, pass-alive areas with sets of points.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tests.oracles.go import Board, Go, Point

NODES = 25_000  # of one ladder, after which KataGo gives up


class Position(NamedTuple):
    """A board in the middle of a ladder, and the point that simple ko bans."""

    board: Board
    ko: Point | None


class GaveUp(Exception):
    """The ladder has more nodes than may be looked at."""


class Reader:
    """Reads the ladders of boards of one size."""

    def __init__(self, size: int, nodes: int = NODES) -> None:
        self.size = size
        self.limit = nodes
        self.rules = Go(size)
        self.nodes = 0
        self.longest = 0  # the most nodes that one ladder has needed

    def neighbours(self, point: Point) -> list[Point]:
        return self.rules.neighbours[point]

    def chain(self, board: Board, stone: Point) -> set[Point]:
        return set(self.rules._connected(board, stone))

    def liberties(self, board: Board, stone: Point) -> list[Point]:
        return sorted(self.rules._liberties(board, self.chain(board, stone)))

    def play(self, before: Position, point: Point, colour: int) -> Position | None:
        """The position after a move; None if it is suicide, of several stones too, or banned by simple ko."""
        if point == before.ko:
            return None
        self.rules.board, self.rules.to_play = before.board, colour
        outcome = self.rules._outcome(point)
        if outcome.suicides:
            return None
        return Position(outcome.board, self.rules._ko_point_after(point, outcome))

    # The two sides of a ladder

    def falls(self, position: Position, stone: Point) -> bool:
        """Whether the chain at `stone`, which moves first, is captured in a ladder."""
        self.nodes = 0
        try:
            return self._defend(Position(position.board, None), stone, 0)
        except GaveUp:
            return False
        finally:
            self.longest = max(self.longest, self.nodes)

    def attacks(self, position: Position, stone: Point) -> Iterator[Point]:
        """The moves next to a chain with two liberties that capture it in a ladder."""
        attacker = 1 - position.board[stone]
        for point in self.liberties(position.board, stone):
            after = self.play(position, point, attacker)
            if after is not None and self.falls(after, stone):
                yield point

    def _count(self) -> None:
        self.nodes += 1
        if self.nodes > self.limit:
            raise GaveUp

    def _defend(self, position: Position, stone: Point, depth: int) -> bool:
        self._count()
        board, defender = position.board, position.board[stone]
        liberties = self.liberties(board, stone)
        if len(liberties) >= 2 or position.ko is not None:
            return False
        if 2 * depth >= 3 * self.size**2:
            return True
        moves = [*self._rescues(board, stone), *liberties]
        for move in dict.fromkeys(moves):
            after = self.play(position, move, defender)
            if after is not None and not self._attack(after, stone, depth + 1):
                return False
        return True

    def _attack(self, position: Position, stone: Point, depth: int) -> bool:
        self._count()
        board, attacker = position.board, 1 - position.board[stone]
        liberties = self.liberties(board, stone)
        if len(liberties) != 2:
            return len(liberties) < 2
        if 2 * depth >= 3 * self.size**2 or self._double_ko(board, stone, liberties):
            return True
        for move in liberties:
            after = self.play(position, move, attacker)
            if after is not None and self._defend(after, stone, depth + 1):
                return True
        return False

    def _rescues(self, board: Board, stone: Point) -> list[Point]:
        """Where the defender captures a chain in atari that touches his own chain."""
        own = self.chain(board, stone)
        touching = {
            near for point in own for near in self.neighbours(point) if board.get(near, board[stone]) != board[stone]
        }
        libs = [self.liberties(board, other) for other in sorted(touching)]
        return [one[0] for one in libs if len(one) == 1]

    def _double_ko(self, board: Board, stone: Point, liberties: list[Point]) -> bool:
        """Both liberties are mouths of kos that the defender cannot win both."""
        if not all(self._mouth(board, point, board[stone]) for point in liberties) or self._rescues(board, stone):
            return False
        joined = [self.play(Position(board, None), point, board[stone]) for point in liberties]
        return all(after is not None and len(self.liberties(after.board, stone)) <= 2 for after in joined)

    def _mouth(self, board: Board, point: Point, colour: int) -> bool:
        """Whether the other side, playing here among stones of `colour` only, captures just one of them."""
        near = self.neighbours(point)
        if any(board.get(other) != colour for other in near):
            return False
        captured = [other for other in near if self.liberties(board, other) == [point]]
        return len(captured) == 1 and len(self.chain(board, captured[0])) == 1


def ladders(reader: Reader, position: Position, to_play: int) -> tuple[set[Point], set[Point]]:
    """The stones that are captured in ladders, and the moves of `to_play` that start one."""
    captured: set[Point] = set()
    moves: set[Point] = set()
    done: set[Point] = set()
    for stone in sorted(position.board):
        if stone in done:
            continue
        chain = reader.chain(position.board, stone)
        done |= chain
        liberties = len(reader.liberties(position.board, stone))
        if liberties == 1 and reader.falls(position, stone):
            captured |= chain
        elif liberties == 2:
            found = set(reader.attacks(position, stone))
            captured |= chain if found else set()
            if position.board[stone] != to_play:
                moves |= found
    return captured, moves


# Pass-alive chains and areas


class Region(NamedTuple):
    """Connected points without a stone of one colour."""

    points: set[Point]
    borders: set[frozenset[Point]]  # chains of that colour
    vital_for: set[frozenset[Point]]


def areas(rules: Go, board: Board, suicide: bool) -> tuple[set[Point], set[Point]]:
    """The points that Black and White own now: a dead stone inside pass-alive territory belongs to its surroundings."""
    owner: dict[Point, int] = {}
    for colour in (0, 1):
        regions, alive = _pass_alive(rules, board, colour, suicide)
        owner |= {point: colour for chain in alive for point in chain}
        for region in regions:
            touching = [p for p in region.points if any(board.get(near) == colour for near in rules.neighbours[p])]
            theirs = any(point in board for point in region.points)
            if not region.borders:
                continue
            if region.borders <= alive and (not theirs or len(region.points) - len(touching) <= 1):
                owner |= dict.fromkeys(region.points, colour)
            elif not theirs:
                owner |= {point: colour for point in region.points if point not in owner}
    owner |= {point: colour for point, colour in board.items() if point not in owner}
    black, white = ({point for point, who in owner.items() if who == colour} for colour in (0, 1))
    return black, white


def _pass_alive(rules: Go, board: Board, colour: int, suicide: bool) -> tuple[list[Region], set[frozenset[Point]]]:
    """Benson's algorithm: the regions of one colour, and its unconditionally alive chains."""
    chain_of = {stone: frozenset(rules._connected(board, stone)) for stone, owner in board.items() if owner == colour}
    open_ = [point for point in rules.points if board.get(point) != colour]
    regions = []
    while open_:
        points, waiting = {open_[0]}, [open_[0]]
        while waiting:
            for near in rules.neighbours[waiting.pop()]:
                if near not in points and board.get(near) != colour:
                    points.add(near)
                    waiting.append(near)
        open_ = [point for point in open_ if point not in points]
        touched = {p: {chain_of[near] for near in rules.neighbours[p] if near in chain_of} for p in points}
        borders = set().union(*touched.values())
        needed = [touched[p] for p in points if suicide or p not in board]
        regions.append(Region(points, borders, set.intersection(*needed)))
    alive = set(chain_of.values())
    while True:
        healthy = [region for region in regions if region.borders <= alive]
        left = {chain for chain in alive if sum(chain in region.vital_for for region in healthy) >= 2}
        if left == alive:
            return regions, alive
        alive = left


# The inputs


class Features:
    """KataGo's inputs along one game of the slow Go: call `planes` and `scalars` once per position, in order."""

    def __init__(self, game: Go, nodes: int = NODES) -> None:
        self.game = game
        self.reader = Reader(game.size, nodes)
        self._captured = [self._ladders()[0]] * 3  # now, one move ago and two moves ago

    def _ladders(self) -> tuple[set[Point], set[Point]]:
        game = self.game
        return ladders(self.reader, Position(game.board, game.ko_point), game.to_play)

    def play(self, action: int) -> None:
        self.game.play(action)
        self._captured = [self._ladders()[0], *self._captured[:2]]

    def planes(self) -> list[list[bool]]:
        """[22][P], row by row."""
        game = self.game
        me, board = game.to_play, game.board
        liberties = {point: game.liberties(point) for point in board}
        ago = [*game.last_moves[:5], *[None] * 5][:5]
        black, white = areas(game, board, game.suicide)
        mine, theirs = (white, black) if me else (black, white)
        sets: list[set[Point]] = [
            set(game.points),
            {point for point, owner in board.items() if owner == me},
            {point for point, owner in board.items() if owner != me},
            *({point for point in board if liberties[point] == count} for count in (1, 2, 3)),
            game.ko_banned(),
            set(),
            set(),
            *({game.points[move]} if move is not None and move < game.pass_action else set() for move in ago),
            *self._captured,
            self._ladders()[1],
            mine,
            theirs,
            set(),
            set(),
        ]
        return [[point in plane for point in game.points] for plane in sets]

    def scalars(self, komi: float | None = None) -> list[float]:
        """[19]; `komi` is that of the game, unless it has been adjusted for draws."""
        game = self.game
        area = game.size**2
        komi = game.komi if komi is None else komi
        own = max(-area - 20, min(area + 20, komi if game.to_play == 1 else -komi))
        passes = [float(move == game.pass_action) for move in [*game.last_moves[:5], *[None] * 5][:5]]
        ko = {"simple": (0.0, 0.0), "positional": (1.0, 0.5), "situational": (1.0, -0.5)}[game.ko]
        below = max(k for k in range(-area - 30, area + 30) if k <= own and k % 2 == area % 2)
        above = own - below
        wave = above if above < 0.5 else 1 - above if above < 1.5 else above - 2
        return [*passes, own / 20, *ko, float(game.suicide), *[0.0] * 5, passes[0], *[0.0] * 3, wave]
