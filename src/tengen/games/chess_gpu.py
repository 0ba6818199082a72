"""Chess on a GPU: `step_and_look` for a batch of games (`chess.cu`)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, UInt8, UInt32

from tengen import gpu
from tengen.games.chess_board import ChessGeometry
from tengen.games.chess_lc0 import PLANES
from tengen.games.chess_position import ChessState
from tengen.gpu.program import defines

_TEAM, _TEAMS = 32, 4  # a warp plays a game, and a block has four of them
_BITS = np.arange(PLANES, dtype=np.uint32)


class ChessLook(NamedTuple):
    """What the program returns about the new positions."""

    legal: UInt8[Array, "batch actions"]
    planes: UInt32[Array, "batch squares 4"]  # the planes of each square, as bits

    def unpacked(self) -> Bool[Array, "batch squares planes"]:
        """The planes one by one."""
        return (self.planes[..., _BITS // 32] >> (_BITS % 32)) & 1 == 1


def _tables(board: ChessGeometry) -> tuple[UInt32[np.ndarray, " words"], UInt32[np.ndarray, " actions"]]:
    """The sets of squares in the order of `chess.cu`, and the actions packed into words."""
    single = (board.knight, board.king, board.pawn_takes, board.their_pawn_takes, board.forward, board.two_forward)
    sets = np.concatenate([board.up, board.down, np.stack(single)])
    return sets.reshape(-1), (board.start | board.end << 6 | board.promotion << 12).astype(np.uint32)


def program(board: ChessGeometry, max_moves: int, batch: int, older: int) -> gpu.Program:
    """The program for a batch of games; `older` is the length of the list of positions."""
    return gpu.Program(
        "games/chess.cu",
        "chess_move_and_look",
        threads=_TEAM * _TEAMS,
        defines=defines(
            SIZE=board.size,
            TEAM=_TEAM,
            TEAMS=_TEAMS,
            BATCH=batch,
            ACTIONS=board.num_actions,
            MAX_MOVES=max_moves,
            OLDER=older,
            DOUBLE_STEP=board.double_step,
            CASTLING=board.castling,
        ),
    )


def move_and_look(
    board: ChessGeometry,
    max_moves: int,
    states: ChessState,
    actions: Int32[Array, " batch"],
    stay: Bool[Array, " batch"],
    keys: tuple[UInt32[np.ndarray, "2 7 squares 2"], UInt32[np.ndarray, "other 2"]],
) -> tuple[ChessState, ChessLook]:
    """Plays `actions` in every game, except in games that have ended or are marked in `stay`.

    `keys` are the random numbers whose sum is the hash: those of pieces, and those of castling rights, the turn and
    files. The list of positions in the state stays as it was.
    """
    batch, older = states.history.shape[:2]
    history = states.history if older else jnp.zeros((1,), jnp.uint32)  # an empty list has no memory
    inputs = states[:-1]
    constants = (*keys, *_tables(board))
    found = gpu.call(
        program(board, max_moves, batch, older),
        [*inputs, history, actions.astype(jnp.int32), stay.astype(jnp.uint8), *map(jnp.asarray, constants)],
        [
            *(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inputs),
            jax.ShapeDtypeStruct((batch, board.num_actions), jnp.uint8),
            jax.ShapeDtypeStruct((batch, board.squares, 4), jnp.uint32),
        ],
        blocks=-(-batch // _TEAMS),
    )
    return ChessState(*found[: len(inputs)], history=states.history), ChessLook(*found[len(inputs) :])
