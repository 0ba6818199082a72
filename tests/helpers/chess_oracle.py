"""python-chess next to Tengen's chess."""

from typing import Any

import numpy as np

from tengen.games import chess_lc0
from tengen.games.chess import Chess
from tengen.games.chess_position import ENDS
from tests.helpers.game_recording import Record

FLIP = 56


def action_of(board: Any, move: Any) -> int:
    """Tengen's number of a move of python-chess."""
    import chess

    start, end = move.from_square, move.to_square
    if board.is_castling(move):
        side = board.is_kingside_castling(move)
        rights = chess.SquareSet(board.clean_castling_rights() & chess.BB_RANKS[chess.square_rank(start)])
        end = max(rights) if side else min(rights)
    if board.turn == chess.BLACK:
        start, end = start ^ FLIP, end ^ FLIP
    letter = chess.piece_symbol(move.promotion) if move.promotion not in (None, chess.KNIGHT) else ""
    return chess_lc0.INDEX[chess_lc0.SQUARES[start] + chess_lc0.SQUARES[end] + letter]


def ending_of(board: Any, plies: int, longest: int) -> str:
    """Why the game is over, in Tengen's words."""
    if board.is_checkmate():
        return "checkmate"
    if board.is_stalemate():
        return "stalemate"
    if board.halfmove_clock >= 100:
        return "50 moves"
    if board.is_repetition(3):
        return "threefold repetition"
    if board.is_insufficient_material():
        return "insufficient material"
    return "longest game" if plies >= longest else "running"


def planes_of(board: Any) -> np.ndarray:
    """Bool[104, 8, 8]: Lc0's planes of the last eight positions, from the side of the player to move now."""
    now, found = board.copy(), np.zeros((104, 8, 8), bool)
    for step in range(8):
        for colour in (board.turn, not board.turn):
            for piece in range(1, 7):
                plane = 13 * step + piece - 1 + (0 if colour == board.turn else 6)
                for square in now.pieces(piece, colour):
                    seen = square if board.turn else square ^ FLIP
                    found[plane, seen // 8, seen % 8] = True
        found[13 * step + 12] = now.is_repetition(2)
        if not now.move_stack:
            break
        now.pop()
    return found


def agree(game: Chess, played: Record, g: int, planes: bool = True) -> list[str]:
    """Replays game `g` with python-chess, asserting that both say the same; its positions in FEN."""
    import chess

    board = chess.Board(game.fen(played.state(0, g)), chess960=game.options.chess960)
    seen = []
    for t in range(played.length(g) + 1):
        state = played.state(t, g)
        fen = board.fen()
        seen.append(fen)
        assert game.fen(state) == fen
        ending = ending_of(board, t, game.max_moves)
        assert ENDS[int(state.end)] == ending, fen
        moves = {action_of(board, move): move for move in board.legal_moves} if ending == "running" else {}
        assert set(np.flatnonzero(played.legal[t, g])) == set(moves), fen
        white = {"1-0": 1, "0-1": -1}.get(board.result(), 0) if ending == "checkmate" else 0
        assert played.returns[t, g].tolist() == [white, -white]
        assert played.over[t, g] == (ending != "running")
        assert int(played.to_play[t, g]) == int(board.turn == chess.BLACK)
        if planes:
            expected = chess_lc0.observation(
                planes_of(board), _rights(board), np.bool_(not board.turn), np.int32(board.halfmove_clock)
            )
            np.testing.assert_array_equal(played.planes[t, g], expected.planes, err_msg=fen)
            np.testing.assert_allclose(played.scalars[t, g], expected.scalars)
        if ending == "running":
            board.push(moves[int(played.actions[t, g])])
    return seen


def _rights(board: Any) -> np.ndarray:
    sides = (board.has_queenside_castling_rights, board.has_kingside_castling_rights)
    return np.array([side(colour) for colour in (board.turn, not board.turn) for side in sides])
