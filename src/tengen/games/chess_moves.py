"""Legal moves of a chess position, all at once, as sets of squares.

A position is seen from the mover's side. No move is tried out: pieces that shield their king stay on its line, and a
check must be answered. Only castling and taking in passing look at the board as it is afterwards.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int8, Int32

from tengen.games.bits import FULL, Bits, bits_of, constant, one_bit
from tengen.games.chess_board import BISHOP, KING, KNIGHT, PAWN, QUEEN, ROOK, THEIRS, ChessGeometry

NOTHING = -1  # no castling right, no pawn that can be taken in passing
CASTLED_KING, CASTLED_ROOK = np.array([2, 6]), np.array([3, 5])  # files after castling on the a-side and the h-side


class Board(NamedTuple):
    """The part of a position that decides which moves are legal, from the mover's side."""

    codes: Int32[Array, " squares"]  # 0 empty, 1 to 6 our P N B R Q K, 9 to 14 theirs
    castling: Int8[Array, "4"]  # files of the rooks that may castle, or -1: our a-side and h-side, then theirs
    passing: Int8[Array, ""]  # the file of a pawn that has just moved two squares, or -1


class Moves(NamedTuple):
    """Legal moves, apart from draws by rule."""

    targets: Bits  # [squares]: where the piece on each square may go; a castling king goes to its rook
    check: Bool[Array, ""]
    passing: Bool[Array, ""]  # whether a pawn can be taken in passing

    def any(self) -> Bool[Array, ""]:
        """Whether there is a legal move."""
        return self.targets.union().any()


class _Sides(NamedTuple):
    occupied: Bits
    mine: Bits
    straight: Bits  # their rooks and queens
    diagonal: Bits  # their bishops and queens
    king: Int32[Array, ""]  # the square of our king


def slide(occupied: Bits, up: Bits, down: Bits) -> tuple[Bits, Bits]:
    """The part of each ray up to and including its first occupied square."""
    above, below = occupied & up, occupied & down
    return up & (above ^ above.minus_one()), down & ~below.smeared().halved()


def _all_rays(occupied: Bits, up: Bits, down: Bits) -> Bits:
    """`slide` along the rays [4, ...] of both kinds: [8, ...], straight, diagonal, straight, diagonal."""
    found = slide(occupied, up, down)
    return Bits(*(jnp.concatenate(words) for words in zip(*found, strict=True)))


_STRAIGHT = np.array([1, 1, 0, 0] * 2, bool)  # of the eight rays


def _sliders(rays: Bits, sides: _Sides) -> Bits:
    """Their pieces at the end of rays [8, ...] that attack along them."""
    straight = _STRAIGHT.reshape(8, *[1] * (rays.low.ndim - 1))
    attackers = Bits(*(jnp.where(straight, a, b) for a, b in zip(sides.straight, sides.diagonal, strict=True)))
    return rays & attackers


def _at(table: np.ndarray, square: Int32[Array, ""], axis: int = 0) -> Bits:
    """The sets of one square."""
    words = jnp.take(jnp.asarray(table), square, axis=axis, mode="clip")
    return Bits(words[..., 0], words[..., 1])


def find_moves(board: Board, geometry: ChessGeometry) -> Moves:
    """All legal moves."""
    codes = board.codes
    kind, is_theirs, is_mine = codes & 7, codes >= THEIRS, (codes > 0) & (codes < THEIRS)
    mine, theirs = bits_of(is_mine), bits_of(is_theirs)
    king = jnp.argmax(codes == KING).astype(jnp.int32)
    straight, diagonal = (bits_of((codes == THEIRS + piece) | (codes == THEIRS + QUEEN)) for piece in (ROOK, BISHOP))
    sides = _Sides(mine | theirs, mine, straight, diagonal, king)
    attacks = _attacks(kind, is_theirs, sides, geometry)
    danger = attacks.keep(is_theirs).union()
    checkers, allowed = _king_safety(codes, sides, geometry)
    targets = _targets(codes, attacks, theirs, allowed, sides, geometry)
    squares = np.arange(geometry.squares)
    king_targets = _at(geometry.king, king) & ~sides.mine & ~danger
    if geometry.castling:
        king_targets |= _castling(board.castling, danger, sides, geometry)
    targets = _choose(squares == king, king_targets, targets)
    passing = jnp.bool_(False)
    if geometry.double_step:
        possible, square = _passing(board, checkers, sides, geometry)
        targets |= Bits(*(jnp.where(possible, word, 0) for word in one_bit(square)))
        passing = possible.any()
    return Moves(targets, checkers.any(), passing)


def _choose(condition: Any, yes: Bits, no: Bits) -> Bits:
    return Bits(jnp.where(condition, yes.low, no.low), jnp.where(condition, yes.high, no.high))


def _attacks(kind: Array, is_theirs: Array, sides: _Sides, geometry: ChessGeometry) -> Bits:
    """[squares]: what each piece attacks; for their pieces, our king hides nothing behind it."""
    seen = _choose(is_theirs, sides.occupied & ~one_bit(sides.king), sides.occupied)
    up, down = slide(seen, constant(geometry.up), constant(geometry.down))
    straight, diagonal = ((up[k] | up[k + 1]) | (down[k] | down[k + 1]) for k in (0, 2))
    takes = _choose(is_theirs, constant(geometry.their_pawn_takes), constant(geometry.pawn_takes))
    return (
        takes.keep(kind == PAWN)
        | constant(geometry.knight).keep(kind == KNIGHT)
        | diagonal.keep((kind == BISHOP) | (kind == QUEEN))
        | straight.keep((kind == ROOK) | (kind == QUEEN))
        | constant(geometry.king).keep(kind == KING)
    )


def _king_safety(codes: Array, sides: _Sides, geometry: ChessGeometry) -> tuple[Bits, Bits]:
    """The pieces that give check, and [squares]: where our other pieces may go for our king's sake."""
    rays = (_at(geometry.up, sides.king, 1), _at(geometry.down, sides.king, 1))
    first = _all_rays(sides.occupied, *rays)
    sliders = _sliders(first, sides)
    leapers = (_at(geometry.knight, sides.king) & bits_of(codes == THEIRS + KNIGHT)) | (
        _at(geometry.pawn_takes, sides.king) & bits_of(codes == THEIRS + PAWN)
    )
    checkers = sliders.union() | leapers
    answers = first.keep(sliders.any()).union() | leapers  # take the piece or step between
    everywhere = Bits(FULL, FULL)
    answers = _choose(checkers.any(), answers, everywhere).keep(checkers.total() < 2)
    shields = first & sides.mine
    second = _all_rays(sides.occupied & ~shields.union(), *rays)
    pinned = shields.any() & _sliders(second, sides).any()
    lines, shields = (x.keep(pinned) for x in (second, shields))
    here = one_bit(np.arange(geometry.squares, dtype=np.int32))
    pinned_here = (here & shields[:, None]).any()  # [8, squares]
    allowed = _choose(pinned_here, lines[:, None], everywhere).common()
    return checkers, allowed & answers


def _targets(codes: Array, attacks: Bits, theirs: Bits, allowed: Bits, sides: _Sides, geometry: ChessGeometry) -> Bits:
    """[squares]: where our pieces other than the king may go, apart from taking in passing."""
    free = ~sides.occupied
    forward = constant(geometry.forward) & free
    two = (constant(geometry.two_forward) & free).keep(forward.any())
    pawns = forward | two | (attacks & theirs)
    others = attacks & ~sides.mine
    return (_choose(codes == PAWN, pawns, others) & allowed).keep((codes > 0) & (codes < THEIRS))


def _castling(rights: Int8[Array, "4"], danger: Bits, sides: _Sides, geometry: ChessGeometry) -> Bits:
    """The rooks to which our king may castle. All squares involved are on the first rank, in the low word."""
    rook, king = rights[:2].astype(jnp.int32), sides.king  # [2]

    def bit(file: Any) -> Array:
        return jnp.uint32(1) << jnp.clip(file, 0, 7).astype(jnp.uint32)

    def span(a: Any, b: Any) -> Array:
        """The squares from one file to another, both included."""
        return (bit(jnp.maximum(a, b)) << 1) - bit(jnp.minimum(a, b))

    way = span(king, CASTLED_KING)
    others = sides.occupied.low & ~bit(king) & ~bit(rook)
    free = ((way | span(rook, CASTLED_ROOK)) & others) == 0
    safe = (way & danger.low) == 0
    # Chess960: the rook may have shielded the king's new square.
    after = Bits(others | bit(CASTLED_ROOK), jnp.broadcast_to(sides.occupied.high, (2,)))
    up, down = constant(geometry.up[:, CASTLED_KING]), constant(geometry.down[:, CASTLED_KING])
    hidden = _sliders(_all_rays(after, up, down), sides).union().any()
    found = (rook >= 0) & free & safe & ~hidden
    rooks = jnp.where(found, bit(rook), 0)
    return Bits(rooks[0] | rooks[1], jnp.uint32(0))


def _passing(
    board: Board, checkers: Bits, sides: _Sides, geometry: ChessGeometry
) -> tuple[Bool[Array, " squares"], Int32[Array, ""]]:
    """[squares]: whether a pawn there can take in passing; and the square to which it moves."""
    size = geometry.size
    file = board.passing.astype(jnp.int32)
    beside = (size - 4) * size + file + np.array([-1, 1])  # [2]
    end = (size - 3) * size + file
    taken = one_bit(end - size)
    inside = (file >= 0) & (file + np.array([-1, 1]) >= 0) & (file + np.array([-1, 1]) < size)
    pawn = inside & (board.codes[jnp.clip(beside, 0, geometry.squares - 1)] == PAWN)
    after = (sides.occupied & ~one_bit(beside) & ~taken) | one_bit(end)
    up, down = (_at(table, sides.king, 1)[:, None] for table in (geometry.up, geometry.down))
    hidden = _sliders(_all_rays(after, up, down), sides).union().any()
    leapers = checkers & ~(sides.straight | sides.diagonal) & ~taken
    possible = pawn & ~hidden & ~leapers.any()
    squares = np.arange(geometry.squares)
    return ((squares[:, None] == beside) & possible).any(1), end


def legal_mask(moves: Moves, codes: Int32[Array, " squares"], geometry: ChessGeometry) -> Bool[Array, " actions"]:
    """The legal moves among all moves. Promotions other than to a knight belong to pawns."""
    size, squares = geometry.size, geometry.squares
    last_but_one = slice(squares - 2 * size, squares - size)
    pawns = moves.targets[last_but_one].keep(codes[last_but_one] == PAWN)
    words = jnp.concatenate([moves.targets.low, pawns.low, moves.targets.high, pawns.high])
    row = np.where(geometry.promotion == 0, geometry.start, geometry.start + 2 * size)
    word = jnp.take(words, (geometry.end // 32) * (squares + size) + row, mode="clip")
    return ((word >> (geometry.end % 32).astype(np.uint32)) & 1) == 1
