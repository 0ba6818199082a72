"""Dots and lines as characters; whole charts are tested where they are used."""

import pytest

from tengen.monitor.text_chart import braille, framed, plot


@pytest.mark.parametrize("dot", [(0, 0), (1, 0), (0, 3), (1, 3), (5, 6)])
def test_braille_dots_by_their_names(dot: tuple[int, int]) -> None:
    # Dots of a cell are numbered 1 2 3 7 down the left and 4 5 6 8 down the right; dot n is bit n - 1.
    numbers = [[1, 4], [2, 5], [3, 6], [7, 8]]
    rows = braille({dot}, 3, 2)
    x, y = dot
    assert rows[y // 4][x // 2] == chr(0x2800 + (1 << (numbers[y % 4][x % 2] - 1)))
    assert "".join(rows).count(" ") == 5


def test_a_line_goes_from_corner_to_corner_and_values_beyond_the_range_are_cut() -> None:
    assert plot([(0, 0), (4, 4)], 5, 5, (0, 4), (0, 4), plain=True) == ["    *", "   * ", "  *  ", " *   ", "*    "]
    assert plot([(0, -9), (4, 99)], 5, 2, (0, 4), (0, 4), joined=False, plain=True) == ["    *", "*    "]


def test_bars_and_a_frame() -> None:
    body = plot([(1, 1)], 3, 3, (0, 2), (0, 2), bars=[(1, 0, 2)], plain=True)
    assert framed(body, {0: "2", 2: "0"}, "time", plain=True) == ["2 + |", "  | *", "0 + |", "  +---", "   time"]
