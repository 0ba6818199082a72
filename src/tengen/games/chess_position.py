"""A chess position as arrays: how moves change it, and what a network sees of it and of the positions before."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float32, Int8, Int16, Int32, UInt8, UInt32

from tengen.games import chess_lc0
from tengen.games.chess_board import BISHOP, KING, KNIGHT, PAWN, PROMOTIONS, QUEEN, ROOK, THEIRS, ChessGeometry
from tengen.games.chess_moves import CASTLED_KING, CASTLED_ROOK, NOTHING
from tengen.games.core import Observation

ENDS = (
    "running", "checkmate", "stalemate", "50 moves", "threefold repetition", "insufficient material", "longest game",
)  # fmt: skip
RUNNING, CHECKMATE, STALEMATE, FIFTY, REPETITION, MATERIAL, LONGEST = range(len(ENDS))
REMEMBERED = 16  # positions whose hashes every node stores
REVERSIBLE = 100  # plies without a capture or a pawn's move that end the game
PLAIN, IN_PASSING, CASTLES = range(3)  # how a move changed the board, for taking it back


class ChessState(NamedTuple):
    """A position, from the mover's side: with Black to move, the board is mirrored from top to bottom."""

    board: UInt32[Array, "*batch ranks"]  # four bits for each square, see chess_moves.Board
    castling: Int8[Array, "*batch 4"]  # see chess_moves.Board
    passing: Int8[Array, "*batch"]  # the file of a pawn that can be taken in passing, or -1
    end: Int8[Array, "*batch"]  # an index of ENDS
    clock: UInt8[Array, "*batch"]  # plies since a capture or a pawn's move
    repeated: UInt8[Array, "*batch"]  # bit k: the position k plies ago was a repetition
    ply: Int16[Array, "*batch"]  # counted from move 1 of the game; Black moves in odd ones
    moves: Int16[Array, "*batch"]  # plies played from the position in which this game began
    undo: UInt32[Array, "*batch moves"]  # the newest moves first, enough to take them back; 0 no move
    recent: UInt32[Array, "*batch recent 2"]  # hashes of the newest positions, this one first
    history: UInt32[Array, "*batch history 2"]  # hashes; ply p is in slot p % 100; empty in tree nodes


class ChessMove(NamedTuple):
    """What a move changes, in squares from the mover's side."""

    start: Array
    end: Array  # where the piece arrives
    kind: Array  # of the piece that moves
    becomes: Array  # its kind afterwards
    taken: Array  # the kind of the piece that is taken, or 0
    taken_at: Array
    castles: Array  # Bool
    rook_start: Array
    rook_end: Array
    undo: Array


def flipped(square: Any, size: int) -> Array:
    """The number of a square from the other side."""
    return (size - 1 - square // size) * size + square % size


def flip(codes: Int32[Array, " squares"], size: int) -> Int32[Array, " squares"]:
    """The board from the other side."""
    codes = codes.reshape(size, size)[::-1].reshape(-1)
    return jnp.where(codes > 0, codes ^ THEIRS, 0)


def decode(codes: Array, action: Array, geometry: ChessGeometry) -> ChessMove:
    """What a legal action changes."""
    tables = jnp.asarray(np.stack([geometry.start, geometry.end, geometry.promotion], -1))
    start, end, letter = tables[action]
    kind, there = codes[start], codes[end]
    castles = (kind == KING) & (there == ROOK)
    last_rank = end >= geometry.squares - geometry.size
    promotes = (kind == PAWN) & last_rank
    in_passing = (kind == PAWN) & (there == 0) & (end % geometry.size != start % geometry.size)
    side = (end > start).astype(jnp.int32)
    becomes = jnp.where(promotes, jnp.asarray(PROMOTIONS)[letter], kind)
    taken = jnp.where(castles, 0, jnp.where(in_passing, PAWN, there & 7))
    how = jnp.where(castles, CASTLES, jnp.where(in_passing, IN_PASSING, PLAIN))
    return ChessMove(
        start=start,
        end=jnp.where(castles, jnp.asarray(CASTLED_KING)[side], end),
        kind=kind,
        becomes=becomes,
        taken=taken,
        taken_at=jnp.where(in_passing, end - geometry.size, end),
        castles=castles,
        rook_start=end,
        rook_end=jnp.asarray(CASTLED_ROOK)[side],
        undo=undo_word(start, end, taken, how, kind),
    )


def moved(codes: Array, state: ChessState, move: ChessMove, geometry: ChessGeometry) -> ChessState:
    """The state after a move, from the other side; hashes, repetitions and the end are as before."""
    square = np.arange(geometry.squares)
    gone = (square == move.start) | (square == move.taken_at) | (move.castles & (square == move.rook_start))
    codes = jnp.where(gone, 0, codes)
    codes = jnp.where(move.castles & (square == move.rook_end), ROOK, codes)
    codes = flip(jnp.where(square == move.end, move.becomes, codes), geometry.size)
    castling = _rights(state.castling, move, geometry)
    two = (move.kind == PAWN) & (move.end - move.start == 2 * geometry.size)
    passing = jnp.where(two & geometry.double_step, move.start % geometry.size, NOTHING).astype(jnp.int8)
    quiet = (move.kind != PAWN) & (move.taken == 0)
    return state._replace(
        board=pack(codes, geometry.size),
        castling=castling,
        passing=passing,
        clock=jnp.where(quiet, jnp.minimum(state.clock, 254) + 1, 0).astype(jnp.uint8),
        ply=(state.ply + 1).astype(jnp.int16),
        moves=(state.moves + 1).astype(jnp.int16),
        undo=jnp.concatenate([move.undo[None], state.undo[:-1]]),
    )


def _rights(castling: Int8[Array, "4"], move: ChessMove, geometry: ChessGeometry) -> Int8[Array, "4"]:
    """Castling rights after a move, from the other side."""
    mine, theirs = castling[:2], castling[2:]
    mine = jnp.where((move.kind == KING) | (mine == move.start), NOTHING, mine)
    taken = theirs == move.taken_at - (geometry.squares - geometry.size)
    return jnp.concatenate([jnp.where(taken, NOTHING, theirs), mine]).astype(jnp.int8)


def too_little(codes: Array, size: int) -> Bool[Array, ""]:
    """Whether neither side can ever checkmate: one minor piece, or bishops on squares of one colour only."""
    kind = codes & 7
    minor = (kind == KNIGHT) | (kind == BISHOP)
    others = ((kind == PAWN) | (kind == ROOK) | (kind == QUEEN)).any()
    square = np.arange(size * size)
    dark = (square % size + square // size) % 2 == 0
    bishops = kind == BISHOP
    one_colour = ~(bishops & dark).any() | ~(bishops & ~dark).any()
    return ~others & ((minor.sum() <= 1) | (~(kind == KNIGHT).any() & one_colour))


_POINTS = np.array([0, 1, 3, 3, 5, 9, 0, 0], np.float32)  # of a piece by its kind
_CERTAIN = 10.0  # points ahead that count as a win


def material(codes: Array) -> Float32[Array, ""]:
    """How far the mover is ahead in pieces, from -1 to 1."""
    points = jnp.asarray(_POINTS)[codes & 7]
    return jnp.clip(jnp.where(codes >= THEIRS, -points, points).sum() / _CERTAIN, -1, 1)


_PIECES = np.array([*range(1, 7), *range(1 + THEIRS, 7 + THEIRS), 255], np.uint8)  # of a position's planes


def observe(state: ChessState, codes: Int32[Array, " squares"], geometry: ChessGeometry) -> Observation:
    """Lc0's planes: the position and the seven before it, with their moves taken back one by one.

    A loop writes the planes of one position after the other, because XLA would repeat unrolled operations for each.
    """
    steps, count = chess_lc0.HISTORY, geometry.squares
    known = jnp.concatenate([jnp.ones(1, bool), state.undo != 0])
    repeated = ((state.repeated >> np.arange(steps, dtype=np.uint8)) & 1 == 1) & known
    flags = jnp.concatenate([state.castling >= 0, (state.ply & 1 == 1)[None]])
    blank = jnp.zeros(steps * chess_lc0.PIECE_PLANES, bool)
    planes = jnp.broadcast_to(jnp.concatenate([jnp.ones(1, bool), blank, flags]), (count, chess_lc0.PLANES))

    def write(carry: tuple[Array, Array], step: tuple[Array, ...]) -> tuple[tuple[Array, Array], None]:
        board, planes = carry
        undo, age, is_known, is_repeated = step
        seen = ((board[:, None] == _PIECES) & is_known) | ((_PIECES == 255) & is_repeated)
        first = 1 + chess_lc0.PIECE_PLANES * age.astype(jnp.int32)
        planes = lax.dynamic_update_slice(planes, seen, (jnp.int32(0), first))
        return (_taken_back(board, undo, age + jnp.uint8(1), geometry), planes), None

    undo = jnp.concatenate([state.undo, jnp.zeros(1, jnp.uint32)])
    ages = jnp.arange(steps, dtype=jnp.uint8)
    (_, planes), _ = lax.scan(write, (codes.astype(jnp.uint8), planes), (undo, ages, known, repeated))
    scalars = state.clock[None] / jnp.float32(chess_lc0.RULE_50_SCALE)
    return Observation(planes.reshape(geometry.size, geometry.size, chess_lc0.PLANES), scalars)


def _taken_back(
    codes: UInt8[Array, " squares"], undo: Array, age: Array, geometry: ChessGeometry
) -> UInt8[Array, " squares"]:
    """The board before a move; moves of odd age are theirs."""
    start, end, taken, how, kind = (
        (undo >> place & mask).astype(jnp.uint8) for place, mask in ((0, 63), (6, 63), (12, 7), (15, 3), (17, 7))
    )
    mine = (age % 2 * THEIRS).astype(jnp.uint8)
    square = jnp.where(age % 2 == 1, geometry.flipped, np.arange(geometry.squares)).astype(jnp.uint8)
    castles, right = how == CASTLES, end > start
    arrived = jnp.where(castles, jnp.where(right, *CASTLED_KING[::-1]), end)
    rook_end = jnp.where(castles, jnp.where(right, *CASTLED_ROOK[::-1]), end)
    taken_at = jnp.where(how == IN_PASSING, end - geometry.size, end)
    put = jnp.where(castles, ROOK + mine, jnp.where(taken > 0, taken + (THEIRS - mine), 0)).astype(jnp.uint8)
    codes = jnp.where((square == arrived) | (square == rook_end), 0, codes)
    codes = jnp.where(square == taken_at, put, codes)
    return jnp.where(square == start, kind + mine, codes).astype(jnp.uint8)


def undo_word(start: Any, end: Any, taken: Any, how: Any, kind: Any) -> UInt32[Array, ""]:
    """What is needed to take a move back, in one word."""
    return jnp.asarray(start | end << 6 | taken << 12 | how << 15 | kind << 17, jnp.uint32)


def pack(codes: Int32[Array, " squares"], size: int) -> UInt32[Array, " ranks"]:
    """Four bits for each square, a word for each rank."""
    places = 4 * np.arange(size, dtype=np.uint32)
    return (codes.astype(jnp.uint32).reshape(size, size) << places).sum(1, dtype=jnp.uint32)


def unpack(board: UInt32[Array, " ranks"], size: int) -> Int32[Array, " squares"]:
    """Undoes `pack`. The word of each square is found by a sum, which XLA computes once and not for every use."""
    square = np.arange(size * size, dtype=np.uint32)
    words = jnp.where(square // size == np.arange(size)[:, None], board[:, None], 0).sum(0, dtype=jnp.uint32)
    return (words >> (4 * (square % size)) & 15).astype(jnp.int32)
