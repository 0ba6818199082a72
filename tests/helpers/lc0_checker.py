"""An independent reader of Lc0's training records: bytes by `struct`, the rules by python-chess.

It asserts what Lc0's rescorer does before it accepts a game, and that the planes are those of the position.
"""

import gzip
import math
import struct
from pathlib import Path
from typing import Any, NamedTuple

SIZE = 8356
_KINDS = ("root", "best", "played", "orig")
_FLOATS = ["root_q", "best_q", "root_d", "best_d", "root_m", "best_m", "plies_left", "result_q", "result_d"]
_FLOATS += [f"{kind}_{part}" for kind in _KINDS[2:] for part in "qdm"]
_SQUARES = [file + rank for rank in "12345678" for file in "abcdefgh"]
_PROVEN, _TOO_LONG, _ADJUDICATED, _HISTORY_ONLY = 8, 16, 32, 64


def _names() -> list[str]:
    """Lc0's 1,858 moves, from the mover's side."""
    found = []
    for start in range(64):
        for end in range(64):
            x, y = abs(start % 8 - end % 8), abs(start // 8 - end // 8)
            if start != end and (0 in (x, y) or x == y or sorted((x, y)) == [1, 2]):
                found.append(_SQUARES[start] + _SQUARES[end])
    for start in range(8):
        for end in range(max(start - 1, 0), min(start + 1, 7) + 1):
            found += ["abcdefgh"[start] + "7" + "abcdefgh"[end] + "8" + piece for piece in "qrb"]
    return found


NAMES = _names()


class Read(NamedTuple):
    """One record."""

    probabilities: tuple[float, ...]
    planes: list[bytes]  # of 104, a byte for each rank
    castling: tuple[int, ...]
    black: int
    rule_50: int
    flags: int
    floats: dict[str, float]
    visits: int
    played: int
    best: int
    policy_kld: float
    q_st: float


def read(path: Path) -> list[Read]:
    """The records of a chunk."""
    data = gzip.decompress(path.read_bytes())
    assert data
    assert len(data) % SIZE == 0
    found = []
    for at in range(0, len(data), SIZE):
        version, input_format = struct.unpack_from("<II", data, at)
        assert (version, input_format) == (6, 1)
        board = data[at + 7440 : at + 8272]
        *small, dummy = struct.unpack_from("<8B", data, at + 8272)
        assert dummy == 0
        floats = dict(zip(_FLOATS, struct.unpack_from("<15f", data, at + 8280), strict=True))
        visits, played, best, policy_kld, q_st = struct.unpack_from("<IHHff", data, at + 8340)
        policy = struct.unpack_from("<1858f", data, at + 8)
        planes = [board[8 * plane : 8 * plane + 8] for plane in range(104)]
        black, rule_50, flags = small[4:]
        found.append(
            Read(
                policy, planes, tuple(small[:4]), black, rule_50, flags, floats, visits, played, best, policy_kld, q_st
            )
        )
    return found


def _squares(plane: bytes) -> list[int]:
    return [8 * rank + file for rank in range(8) for file in range(8) if plane[rank] >> (7 - file) & 1]


def board_of(record: Read, step: int = 0) -> Any:
    """The position `step` plies ago, without rights, from the side of the player to move now."""
    import chess

    board = chess.Board(None)
    for kind in range(12):
        for square in _squares(record.planes[13 * step + kind]):
            board.set_piece_at(square, chess.Piece(kind % 6 + 1, kind < 6))
    return board


def _pieces(board: Any) -> Any:
    return board.piece_map()


def check(path: Path) -> list[Read]:
    """Assert that Lc0's tools would accept the game; its records."""
    import chess

    records = read(path)
    board = board_of(records[0])
    if records[0].black:
        board = board.mirror()
    board.turn = not records[0].black
    ours, theirs = (56, 0) if records[0].black else (0, 56)
    corners = [chess.A1 ^ ours, chess.H1 ^ ours, chess.A1 ^ theirs, chess.H1 ^ theirs]
    for corner, may in zip(corners, records[0].castling, strict=True):
        board.castling_rights |= chess.BB_SQUARES[corner] if may else 0
    board.halfmove_clock = records[0].rule_50
    # A pawn that has just moved two squares can be taken in passing: the position before shows it.
    before, now = (_pieces(board_of(records[0], step)) for step in (1, 0))
    for file in range(8) if before else ():
        pawn = chess.Piece(chess.PAWN, chess.BLACK)
        if before.get(48 + file) == pawn and now.get(32 + file) == pawn and not {48 + file, 40 + file} & set(now):
            board.ep_square = (40 + file) ^ ours
    for index, record in enumerate(records):
        _check_position(board, record, index == 0)
        _check_numbers(record)
        names = {_name(board, move): move for move in board.legal_moves}
        legal = {NAMES[i] for i, share in enumerate(record.probabilities) if share != -1}
        assert legal == set(names), board.fen()
        assert NAMES[record.best] in names
        left = records[-1].floats["plies_left"] + len(records) - 1 - index
        assert math.isclose(record.floats["plies_left"], left, abs_tol=1e-3)
        board.push(names[NAMES[record.played]])
    _check_end(board, records)
    return records


def _name(board: Any, move: Any) -> str:
    import chess

    start, end = move.from_square, move.to_square
    if board.is_castling(move):
        end = (chess.H1 if board.is_kingside_castling(move) else chess.A1) ^ (0 if board.turn else 56)
    flip = 0 if board.turn else 56
    letter = "" if move.promotion in (None, chess.KNIGHT) else chess.piece_symbol(move.promotion)
    return _SQUARES[start ^ flip] + _SQUARES[end ^ flip] + letter


def _check_position(board: Any, record: Read, first: bool) -> None:
    """The planes are those of the board, and of the boards before it."""
    import chess

    assert record.black == int(board.turn == chess.BLACK)
    assert record.rule_50 == board.halfmove_clock <= 100
    rights = [
        side(colour)
        for colour in (board.turn, not board.turn)
        for side in (board.has_queenside_castling_rights, board.has_kingside_castling_rights)
    ]
    assert record.castling == tuple(map(int, rights))
    past = board.copy()
    for step in range(8):
        seen = past if board.turn else past.mirror()
        assert _pieces(board_of(record, step)) == _pieces(seen), (board.fen(), step)
        ones = record.planes[13 * step + 12]
        if not first:
            assert ones == bytes(8) or ones == b"\xff" * 8
        if not past.move_stack:
            break
        past.pop()


def _check_numbers(record: Read) -> None:
    numbers = record.floats
    for name in ("root", "best", "played", "result"):
        assert -1 <= numbers[f"{name}_q"] <= 1
        assert 0 <= numbers[f"{name}_d"] <= 1
        assert abs(numbers[f"{name}_q"]) + numbers[f"{name}_d"] <= 1 + 1e-6
    assert all(numbers[name] >= 0 for name in ("root_m", "best_m", "played_m", "plies_left"))
    assert math.isfinite(numbers["orig_q"])
    shares = [share for share in record.probabilities if share != -1]
    assert all(0 <= share <= 1 for share in shares)
    assert abs(sum(shares) - 1) < 0.01
    assert record.visits > 0
    assert record.policy_kld > 0
    assert record.q_st == 0
    assert not record.flags & ~(_PROVEN | _TOO_LONG | _ADJUDICATED | _HISTORY_ONLY)


def _check_end(board: Any, records: list[Read]) -> None:
    """The result is that of the position after the last move."""
    import chess

    mate = board.is_checkmate()
    for record in records:
        white = (1 if board.turn == chess.BLACK else -1) if mate else 0
        assert record.floats["result_q"] == (-white if record.black else white)
        assert record.floats["result_d"] == (0 if mate else 1)
    last = records[-1]
    drawn = board.is_stalemate() or board.is_insufficient_material() or board.halfmove_clock >= 100
    if last.flags & _TOO_LONG:
        assert all(record.flags & _ADJUDICATED for record in records)
    else:
        assert mate or drawn or board.is_repetition(3)
    if last.flags & _PROVEN:
        assert last.floats["best_q"] == 1
        assert last.floats["best_m"] == 1
    if mate and last.played == last.best:
        assert last.flags & _PROVEN
