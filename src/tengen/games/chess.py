"""Chess, Chess960 and minichess on smaller boards. See docs/chess.md."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float32, Int8, Int16, Int32, UInt8, UInt32

from tengen.games import chess_fen, chess_lc0
from tengen.games.chess_board import BISHOP, KING, KNIGHT, PAWN, PROMOTIONS, QUEEN, ROOK, THEIRS, Geometry, geometry
from tengen.games.chess_moves import CASTLED_KING, CASTLED_ROOK, NOTHING, Board, Moves, find_moves, legal_mask
from tengen.games.core import Game, Observation, PositionInfo, RandomKey, freeze
from tengen.schema import setting

PLAYERS = ("white", "black")
ENDS = (
    "running", "checkmate", "stalemate", "50 moves", "threefold repetition", "insufficient material", "longest game",
)  # fmt: skip
RUNNING, CHECKMATE, STALEMATE, FIFTY, REPETITION, MATERIAL, LONGEST = range(len(ENDS))
REMEMBERED = 16  # positions whose hashes every node stores
REVERSIBLE = 100  # plies without a capture or a pawn's move that end the game
PLAIN, IN_PASSING, CASTLES = range(3)  # how a move changed the board, for taking it back




def _plane_values() -> Int32[np.ndarray, "2 110"]:
    """For each plane of the observation, which value it shows, and what that must be for a 1.

    The values are eight boards, then flags: one that is always set, repetitions, castling rights, Black to move.
    """
    pieces = [*range(1, 7), *range(1 + THEIRS, 7 + THEIRS)]
    history = [[*((k, piece) for piece in pieces), (9 + k, 1)] for k in range(chess_lc0.HISTORY)]
    return np.array([(8, 1), *(pair for pairs in history for pair in pairs), *((17 + k, 1) for k in range(5))]).T


_PLANE_VALUES = _plane_values()


@dataclass(frozen=True)
class ChessOptions:
    """Options of `chess`."""

    chess960: bool = setting(False, "whether games start from the 960 positions of Fischer random chess")
    max_moves: int = setting(512, "moves of both players until a game is a draw", low=1, high=10000)


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
    undo: UInt32[Array, "*batch 7"]  # the newest moves first, enough to take them back; 0 no move
    recent: UInt32[Array, "*batch 16 2"]  # hashes of the newest positions, this one first
    history: UInt32[Array, "*batch 100 2"]  # hashes; ply p is in slot p % 100; empty in tree nodes


class _Move(NamedTuple):
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


class Chess(Game[ChessState]):
    """Chess with all its rules; draws that players may claim end the game at once."""

    name = "chess"
    version = 1
    players = PLAYERS
    Options: ClassVar[type] = ChessOptions
    size: ClassVar[int] = 8

    def __init__(self, options: Any) -> None:
        self.options = options
        self.geometry: Geometry = geometry(self.size)
        self.num_actions = self.geometry.num_actions
        self.max_moves = options.max_moves
        self.planes_shape = (self.size, self.size, chess_lc0.PLANES)
        self.num_scalars = chess_lc0.SCALARS
        numbers = np.random.default_rng(8).integers(0, 2**32, (2, 7, self.geometry.squares, 2), np.uint32)
        numbers[:, 0] = 0
        self._piece_keys = numbers  # [colour, kind, square]
        self._other_keys = np.random.default_rng(9).integers(0, 2**32, (5 + self.size, 2), np.uint32)

    # Setting up

    def init(self, key: RandomKey) -> ChessState:
        if not getattr(self.options, "chess960", False):
            return self.position(chess_fen.start(self.size))
        first_ranks = chess_fen.chess960()
        ranks = np.array([[chess_fen.PIECES.index(piece) for piece in rank] for rank in first_ranks])
        rooks = np.array([[rank.index("R"), rank.rindex("R")] for rank in first_ranks])
        drawn = jax.random.randint(key, (), 0, len(ranks))
        rank, rook = jnp.asarray(ranks)[drawn], jnp.asarray(rooks, jnp.int8)[drawn]
        codes = jnp.zeros(64, jnp.int32).at[:8].set(rank).at[8:16].set(PAWN).at[48:56].set(PAWN + THEIRS)
        board = Board(codes.at[56:].set(rank + THEIRS), jnp.concatenate([rook, rook]), jnp.int8(NOTHING))
        return self._begin(board, 0, 0)

    def position(self, setup: chess_fen.Setup) -> ChessState:
        """A game that starts from a position."""
        castling = jnp.asarray(setup.castling, jnp.int8)
        board = Board(jnp.asarray(setup.codes, jnp.int32), castling, jnp.int8(setup.passing))
        return self._begin(board, 2 * (setup.number - 1) + setup.turn, min(setup.clock, REVERSIBLE))

    def _begin(self, board: Board, ply: int, clock: int) -> ChessState:
        size = self.size
        pieces = jnp.where(ply % 2 == 0, board.codes, self._flip(board.codes))
        colour, kind = jnp.where(pieces >= THEIRS, 1, 0), pieces & 7
        total = jnp.asarray(self._piece_keys)[colour, kind, np.arange(size * size)].sum(0, dtype=jnp.uint32)
        moves = find_moves(board, self.geometry)
        # A pawn that has just moved two squares tells of the position before.
        start = size + board.passing.astype(jnp.int32)
        undo = _undo(start, start + 2 * size, 0, PLAIN, PAWN)
        state = ChessState(
            board=_pack(board.codes, size),
            castling=board.castling,
            passing=jnp.where(moves.passing, board.passing, NOTHING).astype(jnp.int8),
            end=jnp.int8(RUNNING),
            clock=jnp.uint8(clock),
            repeated=jnp.uint8(0),
            ply=jnp.int16(ply),
            moves=jnp.int16(0),
            undo=jnp.zeros(chess_lc0.HISTORY - 1, jnp.uint32).at[0].set(jnp.where(board.passing >= 0, undo, 0)),
            recent=jnp.zeros((REMEMBERED, 2), jnp.uint32),
            history=jnp.zeros((REVERSIBLE, 2), jnp.uint32),
        )
        state = state._replace(recent=state.recent.at[0].set(total + self._extra(state)))
        state = state._replace(history=self._history(state))
        return state._replace(end=self._ending(state, board.codes, moves, jnp.int32(0)))

    def _flipped(self, square: Any) -> Array:
        """The number of a square from the other side."""
        size = self.size
        return (size - 1 - square // size) * size + square % size

    def _flip(self, codes: Int32[Array, " squares"]) -> Int32[Array, " squares"]:
        """The board from the other side."""
        codes = codes.reshape(self.size, self.size)[::-1].reshape(-1)
        return jnp.where(codes > 0, codes ^ THEIRS, 0)

    # Moves

    def _play(self, state: ChessState, action: Int32[Array, ""]) -> ChessState:
        return self._advance(state, action, jnp.bool_(False))[0]

    def _advance(self, state: ChessState, action: Array, hold: Array) -> tuple[ChessState, Array, Moves]:
        """The state after the action (or the same state, if `hold`), its pieces and its moves."""
        codes = _unpack(state.board, self.size)
        move = self._decode(codes, state, action)
        after, raw = self._moved(codes, state, move)
        board = freeze(hold, Board(codes, state.castling, state.passing), after)
        moves = find_moves(board, self.geometry)
        raw = raw._replace(passing=jnp.where(moves.passing, raw.passing, NOTHING).astype(jnp.int8))
        sums = self._delta(state, move)
        now = state.recent[0] - self._extra(state) + sums + self._extra(raw)
        raw = raw._replace(recent=jnp.concatenate([now[None], state.recent[:-1]]))
        times = self._times(raw)
        raw = raw._replace(
            repeated=(state.repeated << 1) | (times > 0).astype(jnp.uint8),
            history=self._history(raw),
        )
        raw = raw._replace(end=self._ending(raw, board.codes, moves, times))
        return freeze(hold, state, raw), board.codes, moves

    def _decode(self, codes: Array, state: ChessState, action: Array) -> _Move:
        tables = jnp.asarray(np.stack([self.geometry.start, self.geometry.end, self.geometry.promotion], -1))
        start, end, letter = tables[action]
        kind, there = codes[start], codes[end]
        castles = (kind == KING) & (there == ROOK)
        last_rank = end >= self.geometry.squares - self.size
        promotes = (kind == PAWN) & last_rank
        in_passing = (kind == PAWN) & (there == 0) & (end % self.size != start % self.size)
        side = (end > start).astype(jnp.int32)
        becomes = jnp.where(promotes, jnp.asarray(PROMOTIONS)[letter], kind)
        taken = jnp.where(castles, 0, jnp.where(in_passing, PAWN, there & 7))
        how = jnp.where(castles, CASTLES, jnp.where(in_passing, IN_PASSING, PLAIN))
        return _Move(
            start=start,
            end=jnp.where(castles, jnp.asarray(CASTLED_KING)[side], end),
            kind=kind,
            becomes=becomes,
            taken=taken,
            taken_at=jnp.where(in_passing, end - self.size, end),
            castles=castles,
            rook_start=end,
            rook_end=jnp.asarray(CASTLED_ROOK)[side],
            undo=_undo(start, end, taken, how, kind),
        )

    def _moved(self, codes: Array, state: ChessState, move: _Move) -> tuple[Board, ChessState]:
        """The board after a move, from the other side, and the state without hashes."""
        square = np.arange(self.geometry.squares)
        gone = (square == move.start) | (square == move.taken_at) | (move.castles & (square == move.rook_start))
        codes = jnp.where(gone, 0, codes)
        codes = jnp.where(move.castles & (square == move.rook_end), ROOK, codes)
        codes = self._flip(jnp.where(square == move.end, move.becomes, codes))
        castling = self._rights(state.castling, move)
        two = (move.kind == PAWN) & (move.end - move.start == 2 * self.size)
        passing = jnp.where(two & self.geometry.double_step, move.start % self.size, NOTHING).astype(jnp.int8)
        quiet = (move.kind != PAWN) & (move.taken == 0)
        raw = state._replace(
            board=_pack(codes, self.size),
            castling=castling,
            passing=passing,
            clock=jnp.where(quiet, jnp.minimum(state.clock, 254) + 1, 0).astype(jnp.uint8),
            ply=(state.ply + 1).astype(jnp.int16),
            moves=(state.moves + 1).astype(jnp.int16),
            undo=jnp.concatenate([move.undo[None], state.undo[:-1]]),
        )
        return Board(codes, castling, passing), raw

    def _rights(self, castling: Int8[Array, "4"], move: _Move) -> Int8[Array, "4"]:
        """Castling rights after a move, from the other side."""
        mine, theirs = castling[:2], castling[2:]
        mine = jnp.where((move.kind == KING) | (mine == move.start), NOTHING, mine)
        taken = theirs == move.taken_at - (self.geometry.squares - self.size)
        return jnp.concatenate([jnp.where(taken, NOTHING, theirs), mine]).astype(jnp.int8)

    # Repetitions

    def _delta(self, state: ChessState, move: _Move) -> UInt32[Array, "2"]:
        """What a move adds to the hash of the pieces."""
        me = self.to_play(state)

        def keys(colour: Array, kind: Any, square: Array) -> Array:
            seen = jnp.where(me == 0, square, self._flipped(square))
            return jnp.asarray(self._piece_keys)[colour, kind, seen]

        rook = jnp.where(move.castles, ROOK, 0)
        gains = keys(me, move.becomes, move.end) + keys(me, rook, move.rook_end)
        losses = keys(me, move.kind, move.start) + keys(me, rook, move.rook_start)
        return gains - losses - keys(1 - me, move.taken, move.taken_at)

    def _extra(self, state: ChessState) -> UInt32[Array, "2"]:
        """The part of the hash for castling rights, a pawn that can be taken in passing, and the turn."""
        black = self.to_play(state) == 1
        castling = jnp.where(black, jnp.roll(state.castling, 2), state.castling) >= 0
        file = np.arange(self.size) == state.passing
        flags = jnp.concatenate([castling, black[None], file])
        return jnp.where(flags[:, None], jnp.asarray(self._other_keys), 0).sum(0, dtype=jnp.uint32)

    def _history(self, state: ChessState) -> UInt32[Array, "100 2"]:
        """The list of positions including the current one."""
        here = np.arange(state.history.shape[0]) == state.moves % REVERSIBLE
        return jnp.where(here[:, None], state.recent[0], state.history)

    def _times(self, state: ChessState) -> Int32[Array, ""]:
        """How often the position has occurred before.

        An entry of another stretch of moves cannot be equal, because a capture or a pawn's move is never undone.
        """
        now = state.recent[0]
        length = state.history.shape[0]
        age = (state.moves - np.arange(length)) % REVERSIBLE  # of each slot, in plies
        older = (age >= REMEMBERED) & (state.history == now).all(1)
        ages = np.arange(1, REMEMBERED)
        newer = (ages <= state.clock) & (state.recent[1:] == now).all(1)
        return newer.sum(dtype=jnp.int32) + (older & (age <= state.clock)).sum(dtype=jnp.int32)

    def _ending(self, state: ChessState, codes: Array, moves: Moves, times: Array) -> Int8[Array, ""]:
        """Why the game is over, or RUNNING."""
        stuck = ~moves.any()
        found = jnp.where(state.moves >= self.max_moves, LONGEST, RUNNING)
        found = jnp.where(self._too_little(codes), MATERIAL, found)
        found = jnp.where(times >= 2, REPETITION, found)
        found = jnp.where(state.clock >= REVERSIBLE, FIFTY, found)
        return jnp.where(stuck, jnp.where(moves.check, CHECKMATE, STALEMATE), found).astype(jnp.int8)

    def _too_little(self, codes: Array) -> Bool[Array, ""]:
        """Whether neither side can ever checkmate: one minor piece, or bishops on squares of one colour only."""
        kind = codes & 7
        minor = (kind == KNIGHT) | (kind == BISHOP)
        others = ((kind == PAWN) | (kind == ROOK) | (kind == QUEEN)).any()
        square = np.arange(self.geometry.squares)
        dark = (square % self.size + square // self.size) % 2 == 0
        bishops = kind == BISHOP
        one_colour = ~(bishops & dark).any() | ~(bishops & ~dark).any()
        return ~others & ((minor.sum() <= 1) | (~(kind == KNIGHT).any() & one_colour))

    def legal_actions(self, state: ChessState) -> Bool[Array, " actions"]:
        codes = _unpack(state.board, self.size)
        moves = find_moves(Board(codes, state.castling, state.passing), self.geometry)
        return legal_mask(moves, codes, self.geometry) & ~self.is_over(state)

    def to_play(self, state: ChessState) -> Int32[Array, ""]:
        return (state.ply & 1).astype(jnp.int32)

    def is_over(self, state: ChessState) -> Bool[Array, ""]:
        return state.end != RUNNING

    def returns(self, state: ChessState) -> Float32[Array, "2"]:
        white = jnp.where(state.end == CHECKMATE, 2.0 * self.to_play(state) - 1, 0)
        return jnp.stack([white, -white]).astype(jnp.float32)

    # What a network sees

    def observe(self, state: ChessState) -> Observation:
        return self._observe(state, _unpack(state.board, self.size))

    def _observe(self, state: ChessState, codes: Int32[Array, " squares"]) -> Observation:
        """Lc0's planes: the position and the seven before it, with their moves taken back one by one."""
        # A loop, because XLA would repeat unrolled operations for every plane.
        ages = np.arange(1, chess_lc0.HISTORY, dtype=np.uint8)
        now = codes.astype(jnp.uint8)
        _, past = lax.scan(lambda board, x: (self._taken_back(board, *x),) * 2, now, (state.undo, ages))
        boards = jnp.concatenate([now[None], past])
        known = jnp.concatenate([jnp.ones(1, bool), state.undo != 0])
        repeated = ((state.repeated >> np.arange(8, dtype=np.uint8)) & 1 == 1) & known
        black = (self.to_play(state) == 1)[None]
        flags = jnp.concatenate([jnp.ones(1, bool), repeated, state.castling >= 0, black]).astype(jnp.uint8)
        values = jnp.concatenate(
            [jnp.where(known[:, None], boards, 0), jnp.broadcast_to(flags[:, None], (len(flags), boards.shape[1]))]
        )
        planes = (values[_PLANE_VALUES[0]] == _PLANE_VALUES[1].astype(np.uint8)[:, None]).T
        scalars = state.clock[None] / jnp.float32(chess_lc0.RULE_50_SCALE)
        return Observation(planes.reshape(self.planes_shape), scalars)

    def _taken_back(self, codes: UInt8[Array, " squares"], undo: Array, age: Array) -> UInt8[Array, " squares"]:
        """The board before a move; moves of odd age are theirs."""
        start, end, taken, how, kind = (
            (undo >> place & mask).astype(jnp.uint8) for place, mask in ((0, 63), (6, 63), (12, 7), (15, 3), (17, 7))
        )
        mine = (age % 2 * THEIRS).astype(jnp.uint8)
        square = jnp.where(age % 2 == 1, self.geometry.flipped, np.arange(self.geometry.squares)).astype(jnp.uint8)
        castles, right = how == CASTLES, end > start
        arrived = jnp.where(castles, jnp.where(right, *CASTLED_KING[::-1]), end)
        rook_end = jnp.where(castles, jnp.where(right, *CASTLED_ROOK[::-1]), end)
        taken_at = jnp.where(how == IN_PASSING, end - self.size, end)
        put = jnp.where(castles, ROOK + mine, jnp.where(taken > 0, taken + (THEIRS - mine), 0)).astype(jnp.uint8)
        codes = jnp.where((square == arrived) | (square == rook_end), 0, codes)
        codes = jnp.where(square == taken_at, put, codes)
        return jnp.where(square == start, kind + mine, codes).astype(jnp.uint8)

    def look(self, state: ChessState) -> PositionInfo:
        codes = _unpack(state.board, self.size)
        return self._look(state, codes, find_moves(Board(codes, state.castling, state.passing), self.geometry))

    def _look(self, state: ChessState, codes: Array, moves: Moves) -> PositionInfo:
        over = self.is_over(state)
        legal = legal_mask(moves, codes, self.geometry) & ~over
        return PositionInfo(legal, self._observe(state, codes), over, self.returns(state))

    def step_and_look(
        self, states: ChessState, actions: Int32[Array, " batch"], stay: Bool[Array, " batch"] | None = None
    ) -> tuple[ChessState, PositionInfo]:
        """Finds the legal moves of the new position once, for its end and for the mask."""
        hold = jax.vmap(self.is_over)(states)
        hold = hold if stay is None else hold | stay

        def one(state: ChessState, action: Array, hold: Array) -> tuple[ChessState, PositionInfo]:
            after, codes, moves = self._advance(state, action, hold)
            return after, self._look(after, codes, moves)

        return jax.vmap(one)(states, actions, hold)

    # Search trees

    def split(self, state: ChessState) -> tuple[ChessState, Array]:
        """Nodes store the last sixteen hashes; the list of up to a hundred is stored once per tree."""
        return state._replace(history=state.history[:0]), state.history

    def join(self, node: ChessState, kept: Array) -> ChessState:
        return node._replace(history=kept)

    # For people

    def setup(self, state: ChessState) -> chess_fen.Setup:
        """The position as plain numbers."""
        state = jax.device_get(state)
        codes = np.asarray(_unpack(jnp.asarray(state.board), self.size), np.int8)
        castling = tuple(int(file) for file in state.castling)
        number, turn = divmod(int(state.ply), 2)
        return chess_fen.Setup(codes, castling, int(state.passing), turn, int(state.clock), number + 1)

    def fen(self, state: ChessState) -> str:
        """The position in FEN."""
        return chess_fen.text(self.setup(state))

    def render(self, state: ChessState) -> str:
        raise NotImplementedError

    def _action_name(self, state: ChessState, action: int) -> str:
        raise NotImplementedError


def _undo(start: Any, end: Any, taken: Any, how: Any, kind: Any) -> UInt32[Array, ""]:
    """What is needed to take a move back, in one word."""
    return jnp.asarray(start | end << 6 | taken << 12 | how << 15 | kind << 17, jnp.uint32)


def _pack(codes: Int32[Array, " squares"], size: int) -> UInt32[Array, " ranks"]:
    """Four bits for each square, a word for each rank."""
    places = 4 * np.arange(size, dtype=np.uint32)
    return (codes.astype(jnp.uint32).reshape(size, size) << places).sum(1, dtype=jnp.uint32)


def _unpack(board: UInt32[Array, " ranks"], size: int) -> Int32[Array, " squares"]:
    """Undoes `_pack`."""
    places = 4 * np.arange(size, dtype=np.uint32)
    return ((board[:, None] >> places) & 15).reshape(-1).astype(jnp.int32)
