"""Chess positions as text (FEN), in plain Python. Castling rights may be as in X-FEN, for Chess960."""

from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
from jaxtyping import Int8

from tengen.games.chess_board import KING, PAWN, ROOK, THEIRS, geometry
from tengen.games.text import LETTERS

PIECES = ".PNBRQK"
"""Letters of White's pieces by kind."""
NOTHING = -1
_FIELDS = 6
_LONGEST = 10_000  # moves
_START = {8: "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR", 5: "rnbqk/ppppp/5/PPPPP/RNBQK"}


@dataclass(frozen=True, eq=False)
class Setup:
    """A position from the side of the player to move."""

    codes: Int8[np.ndarray, " squares"]  # see chess_moves.Board
    castling: tuple[int, int, int, int]
    passing: int  # the file of a pawn that has just moved two squares, or -1
    turn: int
    clock: int  # plies since a capture or a pawn's move
    number: int  # of the move, counted for both players together from 1

    @property
    def size(self) -> int:
        return round(len(self.codes) ** 0.5)

    def from_white(self) -> "Setup":
        """The position from White's side, whose pieces are then ours."""
        if self.turn == 0:
            return self
        codes = self.codes.reshape(self.size, self.size)[::-1].reshape(-1)
        return replace(
            self, codes=np.where(codes > 0, codes ^ THEIRS, 0), castling=self.castling[2:] + self.castling[:2]
        )

    from_mover = from_white  # the same mirror leads back


def start(size: int = 8) -> Setup:
    """The position in which games begin."""
    castling = "KQkq" if size == 8 else "-"
    return parse(f"{_START[size]} w {castling} - 0 1", size)


def chess960() -> list[str]:
    """The 960 first ranks: bishops on squares of both colours, the king between the rooks."""
    ranks = sorted(set(permutations("RNBQKBNR")))

    def good(rank: tuple[str, ...]) -> bool:
        places = [[i for i, piece in enumerate(rank) if piece == kind] for kind in "BRK"]
        (bishop, other), (rook, last), (king,) = places
        return (bishop + other) % 2 == 1 and rook < king < last

    return ["".join(rank) for rank in ranks if good(rank)]


def parse(fen: str, size: int = 8) -> Setup:
    """The position, without impossible castling rights. Raises ValueError if it cannot be played."""
    fields = fen.split()
    if len(fields) != _FIELDS:
        raise ValueError(f"expected {_FIELDS} fields, got {len(fields)}")
    board, side, castling, passing, *counts = fields
    codes = _codes(board, size)
    for king in (KING, KING + THEIRS):
        if (codes == king).sum() != 1:
            raise ValueError("expected one king on each side")
    edge = np.concatenate([codes[:size], codes[-size:]])
    if (edge & 7 == PAWN).any():
        raise ValueError(f"pawns stand on the second to the {'seventh' if size == 8 else 'last but one'} rank")
    if side not in ("w", "b"):
        raise ValueError(f"expected w or b to move, got {side!r}")
    if not all(count.isascii() and count.isdigit() and int(count) <= _LONGEST for count in counts):
        raise ValueError(f"expected the numbers of moves, got {' '.join(counts)!r}")
    white = Setup(codes, _rights(codes, castling, size), NOTHING, 0, int(counts[0]), max(int(counts[1]), 1))
    setup = replace(white, turn=int(side == "b")).from_mover()
    setup = replace(setup, passing=_passing(setup, passing))
    if _in_check(replace(setup, turn=1).from_mover().codes, size):
        raise ValueError("the king of the side that has just moved is in check")
    return setup


def text(setup: Setup) -> str:
    """The position in FEN; castling rights as in X-FEN."""
    size, white = setup.size, setup.from_white()
    rows = []
    for row in white.codes.reshape(size, size)[::-1].tolist():
        line, gap = "", 0
        for code in row:
            line, gap = (line, gap + 1) if code == 0 else (line + (str(gap) if gap else "") + letter(code), 0)
        rows.append(line + (str(gap) if gap else ""))
    passing = "-" if setup.passing == NOTHING else f"{LETTERS[setup.passing]}{size - 2 if setup.turn == 0 else 3}"
    side = "wb"[setup.turn]
    return f"{'/'.join(rows)} {side} {_castling_text(white)} {passing} {setup.clock} {setup.number}"


def letter(code: int) -> str:
    """The letter of a piece from White's side: small for Black's, `.` for an empty square."""
    return PIECES[code & 7].lower() if code >= THEIRS else PIECES[code]


def _codes(board: str, size: int) -> np.ndarray:
    """[squares] from White's side."""
    ranks = board.split("/")
    rows = []
    for rank in ranks:
        row: list[int] = []
        for sign in rank:
            if sign.isascii() and sign.isdigit() and 1 <= int(sign) <= size:
                row += [0] * int(sign)
            elif sign.upper() in PIECES[1:] and len(row) < size:
                row.append(PIECES.index(sign.upper()) + THEIRS * sign.islower())
            else:
                raise ValueError(f"{sign!r} in {rank!r} is not a piece")
        if len(row) != size:
            raise ValueError(f"the rank {rank!r} does not have {size} squares")
        rows.append(row)
    if len(rows) != size:
        raise ValueError(f"expected {size} ranks, got {len(rows)}")
    return np.array(rows[::-1], np.int8).reshape(-1)


def _rights(codes: np.ndarray, given: str, size: int) -> tuple[int, int, int, int]:
    """Files of rooks that may castle, from White's side; rights without king and rook in their places are dropped."""
    found = [NOTHING] * 4
    if given != "-" and (size != 8 or not set(given.upper()) <= set("KQABCDEFGH")):
        raise ValueError(f"expected castling rights as KQkq or -, got {given!r}")
    for sign in given if given != "-" else "":
        black = sign.islower()
        rank = codes[-size:] if black else codes[:size]
        kings = np.flatnonzero(rank == KING + THEIRS * black)
        rooks = np.flatnonzero(rank == ROOK + THEIRS * black)
        if not len(kings):
            continue
        king = int(kings[0])
        match sign.upper():
            case "K":
                chosen = rooks[rooks > king][-1:]
            case "Q":
                chosen = rooks[rooks < king][:1]
            case file:
                chosen = rooks[rooks == LETTERS.index(file.lower())]
        for rook in chosen:
            found[2 * black + int(rook > king)] = int(rook)
    return (found[0], found[1], found[2], found[3])


def _castling_text(white: Setup) -> str:
    signs = ""
    for black in (False, True):
        rank = white.codes[-white.size :] if black else white.codes[: white.size]
        rooks = np.flatnonzero(rank == ROOK + THEIRS * black)
        for side in (1, 0):
            file = white.castling[2 * black + side]
            if file != NOTHING:
                outermost = file == (rooks[-1] if side else rooks[0])
                sign = "QK"[side] if outermost else LETTERS[file].upper()
                signs += sign.lower() if black else sign
    return signs or "-"


def _passing(setup: Setup, given: str) -> int:
    """The file of the pawn that has just moved two squares; -1 if none has."""
    size, codes = setup.size, setup.codes
    if given == "-":
        return NOTHING
    if size != 8 or len(given) != 2 or given[0] not in LETTERS[:size] or given[1] not in "36":
        raise ValueError(f"expected the square of a pawn taken in passing, or -, got {given!r}")
    file = LETTERS.index(given[0])
    column = codes.reshape(size, size)[:, file]
    right = given[1] == "63"[setup.turn]
    return file if right and column[4] == PAWN + THEIRS and column[5] == column[6] == 0 else NOTHING


def _in_check(codes: np.ndarray, size: int) -> bool:
    board = geometry(size)

    def squares(words: np.ndarray) -> list[int]:
        value = int(words[0]) | int(words[1]) << 32
        return [s for s in range(size * size) if value >> s & 1]

    king = int(np.flatnonzero(codes == KING)[0])
    for table, kind in ((board.knight, 2), (board.king, KING), (board.pawn_takes, PAWN)):
        if any(codes[s] == kind + THEIRS for s in squares(table[king])):
            return True
    for rays, nearest in ((board.up, 1), (board.down, -1)):
        for way, ray in enumerate(rays[:, king]):
            line = [int(codes[s]) for s in squares(ray)[::nearest] if codes[s]]
            if line and line[0] in ((4 + THEIRS, 5 + THEIRS) if way < 2 else (3 + THEIRS, 5 + THEIRS)):
                return True
    return False
