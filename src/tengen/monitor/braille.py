"""Lines drawn with characters: dots (x, y), counted from the top left, as text."""

import itertools
import math
from collections.abc import Collection, Sequence


def lines_between(corners: Sequence[tuple[float, float]]) -> set[tuple[int, int]]:
    """The dots (x, y) of straight lines from corner to corner."""
    dots = set()
    for (x0, y0), (x1, y1) in itertools.pairwise(corners):
        steps = max(1, math.ceil(2 * max(abs(x1 - x0), abs(y1 - y0))))
        for step in range(steps + 1):
            dots.add((round(x0 + (x1 - x0) * step / steps), round(y0 + (y1 - y0) * step / steps)))
    return dots


def letters(dots: set[tuple[int, int]], columns: int, rows: int, bars: Collection[tuple[int, int]] = ()) -> list[str]:
    """ASCII: a star for each dot, and a stroke for each dot of `bars`."""
    marks = dict.fromkeys(bars, "|") | dict.fromkeys(dots, "*")
    return ["".join(marks.get((x, y), " ") for x in range(columns)) for y in range(rows)]


def braille(dots: set[tuple[int, int]], columns: int, rows: int) -> list[str]:
    """Braille: each character is 2 dots wide and 4 high, a bit per dot above U+2800."""
    bits = {(0, 0): 1, (0, 1): 2, (0, 2): 4, (1, 0): 8, (1, 1): 16, (1, 2): 32, (0, 3): 64, (1, 3): 128}
    cells = [[0] * columns for _ in range(rows)]
    for x, y in dots:
        cells[y // 4][x // 2] |= bits[x % 2, y % 4]
    return ["".join(chr(0x2800 + cell) if cell else " " for cell in row) for row in cells]
