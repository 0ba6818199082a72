"""Gardner's minichess by the book: every move is tried, and refused if it leaves the king to be taken."""

SIZE = 5
FILES = "abcde"
STEPS = {
    "n": [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)],
    "r": [(0, 1), (1, 0), (0, -1), (-1, 0)],
    "b": [(1, 1), (1, -1), (-1, 1), (-1, -1)],
}
STEPS["q"] = STEPS["k"] = STEPS["r"] + STEPS["b"]
Board = dict[tuple[int, int], str]  # (file, rank) from the lower left to a letter, capital for White


def parse(fen: str) -> tuple[Board, bool]:
    """The pieces, and whether White moves."""
    rows, side = fen.split()[:2]
    board: Board = {}
    for y, row in enumerate(rows.split("/")):
        x = 0
        for sign in row:
            if sign.isdigit():
                x += int(sign)
            else:
                board[x, SIZE - 1 - y] = sign
                x += 1
    return board, side == "w"


def _tries(board: Board, white: bool) -> list[tuple[tuple[int, int], tuple[int, int], str]]:
    """Moves that may leave the king to be taken: (from, to, promotion)."""
    found = []
    for (x, y), piece in board.items():
        if piece.isupper() != white:
            continue
        kind = piece.lower()
        if kind == "p":
            up = 1 if white else -1
            ends = [(x + side, y + up) for side in (-1, 1) if _other(board, (x + side, y + up), white)]
            ends += [(x, y + up)] if (x, y + up) not in board else []
            last = y + up == (SIZE - 1 if white else 0)
            found += [((x, y), end, letter) for end in ends for letter in ("nbrq" if last else [""])]
            continue
        for dx, dy in STEPS[kind]:
            for n in range(1, 2 if kind in "nk" else SIZE):
                end = (x + n * dx, y + n * dy)
                if not (0 <= end[0] < SIZE and 0 <= end[1] < SIZE):
                    break
                if end not in board or _other(board, end, white):
                    found.append(((x, y), end, ""))
                if end in board:
                    break
    return found


def _other(board: Board, square: tuple[int, int], white: bool) -> bool:
    return square in board and board[square].isupper() != white


def _attacked(board: Board, white: bool) -> bool:
    """Whether the king of that side can be taken."""
    king = next(square for square, piece in board.items() if piece == ("K" if white else "k"))
    return any(end == king for _, end, _ in _tries(board, not white))


def legal(fen: str) -> tuple[set[str], bool]:
    """The legal moves in UCI, and whether the side to move is in check."""
    board, white = parse(fen)
    moves = set()
    for start, end, letter in _tries(board, white):
        after = dict(board)
        after[end] = after.pop(start)
        if not _attacked(after, white):
            moves.add("".join(FILES[x] + str(y + 1) for x, y in (start, end)) + letter)
    return moves, _attacked(board, white)
