"""Validation of chess positions as text (FEN), in plain Python."""

_FIELDS = 6
_STRAIGHT, _DIAGONAL = ((0, 1), (1, 0), (0, -1), (-1, 0)), ((1, 1), (1, -1), (-1, 1), (-1, -1))
_KNIGHT = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))
_LONGEST = 10_000  # moves
_HOMES = {"K": "Ke1 Rh1", "Q": "Ke1 Ra1", "k": "ke8 rh8", "q": "ke8 ra8"}


def checked(fen: str) -> str:
    """The FEN without impossible castling rights. Raises ValueError if the position cannot be played."""
    fields = fen.split()
    if len(fields) != _FIELDS:
        raise ValueError(f"expected {_FIELDS} fields, got {len(fields)}")
    board, side, castling, passant, *counts = fields
    squares = _squares(board)
    for king in "Kk":
        if list(squares.values()).count(king) != 1:
            raise ValueError("expected one king on each side")
    if any(piece in "Pp" and square[1] in "18" for square, piece in squares.items()):
        raise ValueError("pawns stand on the second to the seventh rank")
    if side not in ("w", "b"):
        raise ValueError(f"expected w or b to move, got {side!r}")
    waiting = "k" if side == "w" else "K"
    if _attacked(squares, next(square for square, piece in squares.items() if piece == waiting), side == "w"):
        raise ValueError("the king of the side that has just moved is in check")
    if castling != "-" and not set(castling) <= set(_HOMES):
        raise ValueError(f"expected castling rights as KQkq or -, got {castling!r}")
    if not all(count.isascii() and count.isdigit() and int(count) <= _LONGEST for count in counts):
        raise ValueError(f"expected the numbers of moves, got {' '.join(counts)!r}")
    home = [
        right
        for right, pieces in _HOMES.items()
        if right in castling and all(squares.get(one[1:]) == one[0] for one in pieces.split())
    ]
    return " ".join([board, side, "".join(home) or "-", _passant(squares, passant, side), *counts])


def _squares(board: str) -> dict[str, str]:
    """{square: piece}."""
    ranks = board.split("/")
    found: dict[str, str] = {}
    for number, rank in enumerate(ranks):
        column = 0
        for sign in rank:
            if sign in "12345678":
                column += int(sign)
            elif sign in "PNBRQKpnbrqk" and column < 8:
                found[f"{'abcdefgh'[column]}{8 - number}"] = sign
                column += 1
            else:
                raise ValueError(f"{sign!r} in {rank!r} is not a piece")
        if column != 8:
            raise ValueError(f"the rank {rank!r} does not have 8 squares")
    if len(ranks) != 8:
        raise ValueError(f"expected 8 ranks, got {len(ranks)}")
    return found


def _passant(squares: dict[str, str], passant: str, side: str) -> str:
    """The square behind a pawn that has just moved two squares; `-` if no pawn has."""
    if passant == "-":
        return passant
    if len(passant) != 2 or passant[0] not in "abcdefgh" or passant[1] not in "36":
        raise ValueError(f"expected the square of a pawn taken in passing, or -, got {passant!r}")
    rank, pawn, origin = (5, "p", 7) if side == "w" else (4, "P", 2)
    there = squares.get(f"{passant[0]}{rank}") == pawn and passant not in squares
    right = passant[1] == ("6" if side == "w" else "3")
    return passant if there and right and f"{passant[0]}{origin}" not in squares else "-"


def _attacked(squares: dict[str, str], square: str, by_white: bool) -> bool:
    """Whether a piece of that side attacks the square."""
    column, row = "abcdefgh".index(square[0]), int(square[1]) - 1

    def piece(columns: int, rows: int) -> str | None:
        """The piece at that distance; empty if there is none, None outside the board."""
        x, y = column + columns, row + rows
        return squares.get(f"{'abcdefgh'[x]}{y + 1}", "") if 0 <= x < 8 and 0 <= y < 8 else None

    def mine(found: str | None, kinds: str) -> bool:
        return bool(found) and found in (kinds.upper() if by_white else kinds)

    pawns = -1 if by_white else 1
    if any(mine(piece(side, pawns), "p") for side in (-1, 1)) or any(mine(piece(*jump), "n") for jump in _KNIGHT):
        return True
    for ways, kinds in ((_STRAIGHT, "rq"), (_DIAGONAL, "bq")):
        for x, y in ways:
            if mine(piece(x, y), "k"):
                return True
            distance = 1
            while piece(x * distance, y * distance) == "":
                distance += 1
            if mine(piece(x * distance, y * distance), kinds):
                return True
    return False
