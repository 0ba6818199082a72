"""Ladders against an oracle that reads them with plain recursion."""

import random
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest

from tengen.games import go_ladders
from tengen.games.go_chains import chains_of
from tengen.games.go_ladders import LadderLimits, Ladders
from tests.oracles.go import Go, Point
from tests.oracles.go_katago import Position, Reader, ladders

# The stone in the second row has two liberties, which are both mouths of kos.
DOUBLE_KO = """
    . . X X X
    O X . X .
    O O O . X
    O . O . O
    O . . O .
"""
# Black captures a stone in a ladder that runs to the lower right.
LADDER = """
    . . . . . . . . .
    . . . . . . . . .
    . . . X X . . . .
    . . X O . . . . .
    . . . . . . . . .
    . . . . . . . . .
    . . . . . . . . .
    . . . . . . . . .
    . . . . . . . . .
"""


def board_of(text: str) -> dict[Point, int]:
    rows = [line.split() for line in text.strip().splitlines()]
    return {(r, c): "XO".index(cell) for r, row in enumerate(rows) for c, cell in enumerate(row) if cell != "."}


def dense_boards(size: int, count: int, seed: int) -> list[Position]:
    """Random stones on most points, without those that have no liberty."""
    draw, reader, boards = random.Random(seed), Reader(size), []
    while len(boards) < count:
        board = {point: draw.randint(0, 1) for point in reader.rules.points if draw.random() < 0.8}
        dead = [stone for stone in board if not reader.liberties(board, stone)]
        board = {stone: colour for stone, colour in board.items() if stone not in dead}
        if all(reader.liberties(board, stone) for stone in board):
            boards.append(Position(board, None))
    return boards


def positions_of_games(size: int, games: int, every: int, seed: int) -> list[tuple[Position, int]]:
    """Positions of random games, with their ko points and the player to move."""
    draw, found = random.Random(seed), []
    for _ in range(games):
        game = Go(size, ko="simple", max_moves=size**2 * 5 // 4)
        while not game.over:
            legal = [action for action, ok in enumerate(game.legal_actions()[:-1]) if ok]
            game.play(draw.choice(legal or [game.pass_action]))
            if game.moves % every == 0:
                found.append((Position(game.board, game.ko_point), game.to_play))
    return found


@cache
def _program(size: int, limits: LadderLimits) -> Any:
    return jax.jit(jax.vmap(lambda chains, ko, turn: go_ladders.read(chains, ko, turn, size, limits)))


def read(size: int, limits: LadderLimits, positions: list[Position], turns: list[int]) -> Ladders:
    points = [(row, column) for row in range(size) for column in range(size)]
    chains = np.stack([chains_of([p.board.get(point, -1) for point in points], size) for p in positions])
    ko = np.array([-1 if p.ko is None else points.index(p.ko) for p in positions], np.int16)
    return jax.device_get(_program(size, limits)(chains, ko, np.array(turns, np.int32)))


def compare(size: int, limits: LadderLimits, positions: list[Position], turns: list[int]) -> None:
    found, reader = read(size, limits, positions, turns), Reader(size)
    for number, position in enumerate(positions):
        wanted = ladders(reader, position, turns[number])
        for mask, points in zip((found.captured[number], found.attacks[number]), wanted, strict=True):
            assert {divmod(int(point), size) for point in np.flatnonzero(mask)} == points, (number, position)


def test_dense_boards() -> None:
    """Kos, double kos, snapbacks and captures."""
    positions = [Position(board_of(DOUBLE_KO), None), *dense_boards(5, 47, seed=1)]
    assert (1, 1) in ladders(Reader(5), positions[0], 0)[0]
    without = Reader(5)
    without._double_ko = lambda *_: False  # type: ignore[method-assign]
    assert (1, 1) not in ladders(without, positions[0], 0)[0]
    compare(5, go_ladders.full_limits(5), positions, [number % 2 for number in range(len(positions))])


def test_the_oracle_reads_ladders() -> None:
    running, breaker = board_of(LADDER), {(6, 6): 1}
    reader = Reader(9)
    assert ladders(reader, Position(running, None), 0) == ({(3, 3)}, {(4, 3)})
    assert ladders(reader, Position(running, None), 1) == ({(3, 3)}, set())
    assert ladders(reader, Position(running | breaker, None), 0) == (set(), set())


@pytest.mark.slow
@pytest.mark.parametrize(("size", "games", "every"), [(3, 100, 1), (5, 40, 2), (9, 6, 3), (13, 1, 8), (19, 1, 20)])
def test_positions_of_random_games(size: int, games: int, every: int) -> None:
    given = positions_of_games(size, games, every, seed=size)
    for limits in (go_ladders.limits(size), go_ladders.full_limits(size)):
        compare(size, limits, [position for position, _ in given], [turn for _, turn in given])


@pytest.mark.slow
def test_reading_stops_at_its_limits() -> None:
    """A ladder across the board needs about 20 moves: with fewer, its stone is not captured."""
    position = [Position(board_of(LADDER), None)] * 8
    for limits, captured in ((go_ladders.limits(9), True), (LadderLimits(6, 40), False), (LadderLimits(256, 6), False)):
        assert read(9, limits, position, [0] * 8).captured.any() == captured
