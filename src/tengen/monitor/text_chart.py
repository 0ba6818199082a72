"""Charts as lines of text, in braille or in ASCII."""

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence

Point = tuple[float, float]
Dots = set[tuple[int, int]]  # (x, y), counted from the top left


def plot(
    points: Sequence[Point],
    columns: int,
    rows: int,
    x: tuple[float, float],
    y: tuple[float, float],
    *,
    joined: bool = True,
    bars: Iterable[tuple[float, float, float]] = (),
    plain: bool = False,
) -> list[str]:
    """Points in the ranges `x` and `y`, as a line or as dots, with error bars (x, from, to); `plain` is ASCII."""
    across, down = (columns, rows) if plain else (2 * columns, 4 * rows)
    (left, right), (low, high) = x, y

    def place(x: float, y: float) -> Point:
        y = min(max(y, low), high)
        return (across - 1) * (x - left) / ((right - left) or 1.0), (down - 1) * (high - y) / ((high - low) or 1.0)

    places = [place(*point) for point in points]
    dots = (
        lines_between(places if len(places) > 1 else 2 * places)
        if joined
        else {(round(a), round(b)) for a, b in places}
    )
    strokes: Dots = set().union(*(lines_between([place(x, start), place(x, end)]) for x, start, end in bars))
    if plain:
        return letters(dots, columns, rows, strokes)
    # Bars are half as dense as the line, to be distinguished from it.
    return braille(dots | {dot for dot in strokes if dot[1] % 2}, columns, rows)


def framed(body: list[str], labels: Mapping[int, str], footer: str, *, plain: bool = False) -> list[str]:
    """The body with labels of its rows at the left, and a footer below the axis."""
    width, columns = max(map(len, labels.values())), max(map(len, body))
    tick, side, corner, floor = "+|+-" if plain else "┤│└─"
    lines = [
        f"{labels.get(row, ''):>{width}} {tick if row in labels else side}{text}".rstrip()
        for row, text in enumerate(body)
    ]
    return [*lines, " " * (width + 1) + corner + floor * columns, " " * (width + 2) + footer]


def lines_between(corners: Sequence[Point]) -> Dots:
    dots = set()
    for (x0, y0), (x1, y1) in itertools.pairwise(corners):
        steps = max(1, math.ceil(2 * max(abs(x1 - x0), abs(y1 - y0))))
        for step in range(steps + 1):
            dots.add((round(x0 + (x1 - x0) * step / steps), round(y0 + (y1 - y0) * step / steps)))
    return dots


def letters(dots: Dots, columns: int, rows: int, bars: Collection[tuple[int, int]] = ()) -> list[str]:
    """ASCII: a star for each dot, and a stroke for each dot of `bars`."""
    marks = dict.fromkeys(bars, "|") | dict.fromkeys(dots, "*")
    return ["".join(marks.get((x, y), " ") for x in range(columns)) for y in range(rows)]


def braille(dots: Dots, columns: int, rows: int) -> list[str]:
    """Braille: each character is 2 dots wide and 4 high, a bit per dot above U+2800."""
    bits = {(0, 0): 1, (0, 1): 2, (0, 2): 4, (1, 0): 8, (1, 1): 16, (1, 2): 32, (0, 3): 64, (1, 3): 128}
    cells = [[0] * columns for _ in range(rows)]
    for x, y in dots:
        cells[y // 4][x // 2] |= bits[x % 2, y % 4]
    return ["".join(chr(0x2800 + cell) if cell else " " for cell in row) for row in cells]
