"""Where handicap stones go, by GTP's specification."""

from tengen.engine.gtp.protocol import GtpError


def fixed(size: int, count: int) -> list[int]:
    """Points, row by row from the top left, of so many stones. GtpError if they have no fixed places."""
    if not 2 <= count <= most_fixed(size):
        raise GtpError("invalid number of stones")
    edge = 2 if size < 12 else 3  # as GNU Go, whose author wrote the specification
    low, middle, high = edge, size // 2, size - 1 - edge  # rows and columns from the bottom left
    corners = [(low, low), (high, high), (low, high), (high, low)]
    sides = [(low, middle), (high, middle), (middle, low), (middle, high)]  # (column, row)
    points = corners[:count] if count < 4 else corners + sides[: (count - 4) // 2 * 2]
    if count > 4 and count % 2 == 1:
        points.append((middle, middle))
    return [(size - 1 - row) * size + column for column, row in points]


def most_fixed(size: int) -> int:
    """How many handicap stones have fixed places."""
    if size < 7:
        return 0
    return 4 if size == 7 or size % 2 == 0 else 9
