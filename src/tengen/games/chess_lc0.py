"""Lc0's encoding of chess: 1,858 moves, and 112 input planes in its classical format. See docs/chess.md.

Squares are numbered a1 = 0, b1 = 1, ..., h8 = 63, always from the side of the player to move: when Black moves, the
ranks are mirrored (square ^ 56) and the files stay. Castling is the king taking its own rook (`e1h1`), and promotion to
a knight has no letter (`a7a8`), while `a7a8q`, `a7a8r` and `a7a8b` do.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float32, Int, Int32, UInt64

from tengen.games.core import Observation
from tengen.games.text import LETTERS

HISTORY = 8  # positions that a network sees
PIECE_PLANES = 13  # of each position: our P N B R Q K, their P N B R Q K, and whether it is a repetition
INPUTS = 112
RULE_50 = 109  # Lc0's plane with the number of plies since a capture or a pawn's move
RULE_50_SCALE = 99  # networks are trained on the count divided by it

# Tengen's observation: plane 0 is Lc0's last one, which is 1 everywhere; then Lc0's planes 0 to 108 in their order.
# Plane 109 is the only scalar, the count divided by RULE_50_SCALE; plane 110 is always 0 and left out.
PLANES = 110
SCALARS = 1
SQUARES = tuple(f"{file}{rank}" for rank in "12345678" for file in LETTERS[:8])


def numbered_moves(size: int = 8) -> list[tuple[int, int, int]]:
    """(from, to, promotion) of every move in Lc0's order; smaller boards are numbered in the same way.

    Promotion is 0 for moves without a letter (which includes promotion to a knight), 1 queen, 2 rook, 3 bishop.
    """
    found, squares = [], size * size
    for start in range(squares):
        for end in range(squares):
            x, y = abs(start % size - end % size), abs(start // size - end // size)
            if start != end and (x == 0 or y == 0 or x == y or {x, y} == {1, 2}):
                found.append((start, end, 0))
    last = squares - size
    for start in range(last - size, last):
        ends = range(max(start + size - 1, last), min(start + size + 1, squares - 1) + 1)
        found += [(start, end, piece) for end in ends for piece in (1, 2, 3)]
    return found


def move_names(size: int = 8) -> tuple[str, ...]:
    """Names of the moves, from the mover's side."""
    squares = [f"{file}{rank + 1}" for rank in range(size) for file in LETTERS[:size]]
    return tuple(f"{squares[a]}{squares[b]}{' qrb'[piece].strip()}" for a, b, piece in numbered_moves(size))


_MOVES = numbered_moves()
NUM_MOVES = len(_MOVES)
MOVES = move_names()
"""Names of the moves, from the mover's side."""
INDEX: dict[str, int] = {name: number for number, name in enumerate(MOVES)}
FROM: Int32[np.ndarray, "1858"] = np.array([start for start, _, _ in _MOVES], np.int32)
TO: Int32[np.ndarray, "1858"] = np.array([end for _, end, _ in _MOVES], np.int32)
PROMOTION: Int32[np.ndarray, "1858"] = np.array([piece for *_, piece in _MOVES], np.int32)
"""0 without a letter (which includes promotion to a knight), 1 queen, 2 rook, 3 bishop."""


def convolution(size: int = 8) -> Int32[np.ndarray, " actions"]:
    """Where each move is in the output of a convolutional policy head: plane * squares + from.

    The planes are eight directions times the distance, eight jumps of a knight, and nine promotions with a letter.
    """
    ways = ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1))  # N NE E SE S SW W NW
    jumps = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))
    first_jump = 8 * (size - 1)
    found = []
    for start, end, piece in numbered_moves(size):
        x, y = end % size - start % size, end // size - start // size
        distance = max(abs(x), abs(y))
        if piece:
            plane = first_jump + 8 + 3 * (x + 1) + (2, 0, 1)[piece - 1]  # rook, bishop, queen
        elif (x, y) in jumps:
            plane = first_jump + jumps.index((x, y))
        else:
            plane = (size - 1) * ways.index((x // distance, y // distance)) + distance - 1
        found.append(plane * size * size + start)
    return np.array(found, np.int32)


def used_planes(size: int = 8) -> int:
    """How many planes `convolution` uses: 73 on the usual board."""
    return 8 * (size - 1) + 8 + 9


CONVOLUTION_PLANES = 80  # in Lc0's networks, the last seven unused
CONVOLUTION = convolution()
ATTENTION_LOGITS = 64 * 64 + 8 * 24
ATTENTION: Int32[np.ndarray, "1858"] = np.where(
    PROMOTION == 0, FROM * 64 + TO, 4096 + (FROM % 8) * 24 + (TO % 8) * 3 + PROMOTION - 1
).astype(np.int32)
"""Where each move is in the output of an attention policy head: 64 x 64 squares, then 8 x 8 files x 3 promotions."""


def observation(
    history: Bool[Any, "*batch 104 height width"],
    castling: Bool[Any, "*batch 4"],
    black: Bool[Any, "*batch"],
    rule_50: Int[Any, "*batch"],
) -> Observation:
    """Tengen's observation: planes Bool[*batch, 8, 8, 110] and scalars Float32[*batch, 1].

    `history` [plane, rank, file] is Lc0's planes 0 to 103; `castling` is whether we may castle on the a-side and on the
    h-side, then whether they may; `rule_50` counts plies. NumPy gives NumPy, JAX gives JAX.
    """
    xp: Any = jnp if isinstance(history, jax.Array) else np
    history = xp.asarray(history)
    flags = xp.concatenate([castling, xp.asarray(black)[..., None]], -1)[..., None, None]
    batch, board = history.shape[:-3], history.shape[-2:]
    on_board = xp.ones((*batch, 1, *board), bool)
    planes = xp.concatenate([on_board, history, xp.broadcast_to(flags, (*batch, 5, *board))], -3)
    scalars = (xp.asarray(rule_50)[..., None] / xp.float32(RULE_50_SCALE)).astype(xp.float32)
    return Observation(xp.moveaxis(planes, -3, -1), scalars)


def inputs(seen: Observation, rule_50_scale: float = 1.0) -> Float32[Any, "*batch 112 8 8"]:
    """Lc0's 112 planes of Tengen's observation.

    Lc0's engine gives its networks the raw count of plies (a scale of 1), its trainers the count divided by 99.
    """
    xp: Any = jnp if isinstance(seen.planes, jax.Array) else np
    planes = xp.moveaxis(seen.planes, -1, -3).astype(xp.float32)
    ones, zeros = planes[..., :1, :, :], xp.zeros_like(planes[..., :1, :, :])
    count = xp.round(xp.asarray(seen.scalars) * RULE_50_SCALE)[..., None, None] / xp.float32(rule_50_scale)
    return xp.concatenate([planes[..., 1:, :, :], ones * count, zeros, ones], -3)


def unpack(boards: UInt64[np.ndarray, "*batch 104"]) -> Bool[np.ndarray, "*batch 104 8 8"]:
    """Planes [rank, file] of the boards in Lc0's training records: a byte per rank, its highest bit is file a."""
    octets = np.ascontiguousarray(boards, "<u8").view(np.uint8).reshape(*boards.shape, 8)
    return np.unpackbits(octets, axis=-1).reshape(*boards.shape, 8, 8).astype(bool)


def pack(planes: Bool[np.ndarray, "*batch 104 8 8"]) -> UInt64[np.ndarray, "*batch 104"]:
    """Undoes `unpack`."""
    octets = np.packbits(planes.astype(bool), axis=-1).reshape(*planes.shape[:-2], 8)
    return np.ascontiguousarray(octets).view("<u8")[..., 0].astype(np.uint64)
