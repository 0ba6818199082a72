"""Chess, Chess960 and minichess on smaller boards. See docs/chess.md."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float32, Int8, Int32, UInt32

from tengen.games import chess_fen, chess_gpu, chess_lc0, chess_names
from tengen.games.batching import quick_jit
from tengen.games.chess_board import PAWN, ROOK, THEIRS, ChessGeometry, geometry
from tengen.games.chess_moves import NOTHING, Board, Moves, find_moves, legal_mask
from tengen.games.chess_position import (
    CHECKMATE,
    FIFTY,
    LONGEST,
    MATERIAL,
    PLAIN,
    REMEMBERED,
    REPETITION,
    REVERSIBLE,
    RUNNING,
    STALEMATE,
    ChessMove,
    ChessState,
    decode,
    flip,
    flipped,
    material,
    moved,
    observe,
    pack,
    too_little,
    undo_word,
    unpack,
)  # fmt: skip
from tengen.games.core import Game, Observation, PositionInfo, RandomKey, freeze
from tengen.games.text import LETTERS, render_grid
from tengen.schema import setting

PLAYERS = ("white", "black")


@dataclass(frozen=True)
class ChessOptions:
    """Options of `chess`."""

    chess960: bool = setting(False, "whether games start from the 960 positions of Fischer random chess")
    max_moves: int = setting(512, "moves of both players until a game is a draw", low=1, high=10000)


class ChessMoment(NamedTuple):
    """A position on the host: arrays are NumPy's."""

    state: ChessState
    legal: Bool[Any, " actions"]
    check: Bool[Any, ""]


class Chess(Game[ChessState]):
    """Chess with all its rules; draws that players may claim end the game at once."""

    name = "chess"
    version = 1
    players = PLAYERS
    Options: ClassVar[type] = ChessOptions
    size: ClassVar[int] = 8
    most_legal_moves = 256  # 218 in the positions that games can reach
    playout_moves = 20  # a whole random game has hundreds of moves, and nine of ten are drawn

    def __init__(self, options: Any) -> None:
        self.options = options
        self.geometry: ChessGeometry = geometry(self.size)
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
            setup = chess_fen.start(self.size)
            board = Board(jnp.asarray(setup.codes, jnp.int32), jnp.array(setup.castling, jnp.int8), jnp.int8(NOTHING))
            return self._begin(board, 0, 0)
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
        board = Board(
            *map(jnp.asarray, (setup.codes.astype(np.int32), np.array(setup.castling, np.int8), np.int8(setup.passing)))
        )
        ply, clock = 2 * (setup.number - 1) + setup.turn, min(setup.clock, REVERSIBLE)
        return self._from_board(board, np.int32(ply), np.int32(clock))

    @cached_property
    def _from_board(self) -> Callable[..., ChessState]:
        return quick_jit(self._begin)

    def _begin(self, board: Board, ply: Any, clock: Any) -> ChessState:
        size = self.size
        pieces = jnp.where(ply % 2 == 0, board.codes, flip(board.codes, self.size))
        colour, kind = jnp.where(pieces >= THEIRS, 1, 0), pieces & 7
        total = jnp.asarray(self._piece_keys)[colour, kind, np.arange(size * size)].sum(0, dtype=jnp.uint32)
        moves = find_moves(board, self.geometry)
        # A pawn that has just moved two squares tells of the position before.
        start = size + board.passing.astype(jnp.int32)
        undo = undo_word(start, start + 2 * size, 0, PLAIN, PAWN)
        state = ChessState(
            board=pack(board.codes, size),
            castling=board.castling,
            passing=jnp.where(moves.passing, board.passing, NOTHING).astype(jnp.int8),
            end=jnp.int8(RUNNING),
            clock=jnp.asarray(clock, jnp.uint8),
            repeated=jnp.uint8(0),
            ply=jnp.asarray(ply, jnp.int16),
            moves=jnp.int16(0),
            undo=jnp.zeros(chess_lc0.HISTORY - 1, jnp.uint32).at[0].set(jnp.where(board.passing >= 0, undo, 0)),
            recent=jnp.zeros((REMEMBERED, 2), jnp.uint32),
            history=jnp.zeros((REVERSIBLE, 2), jnp.uint32),
        )
        state = state._replace(recent=state.recent.at[0].set(total + self._extra(state)))
        state = state._replace(history=self._history(state))
        return state._replace(end=self._ending(state, board.codes, moves, jnp.int32(0)))

    # Moves

    def _play(self, state: ChessState, action: Int32[Array, ""]) -> ChessState:
        return self._advance(state, action, jnp.bool_(False))[0]

    def _advance(self, state: ChessState, action: Array, hold: Array) -> tuple[ChessState, Array, Moves]:
        """The state after the action (or the same state, if `hold`), its pieces and its moves."""
        codes = unpack(state.board, self.size)
        move = decode(codes, action, self.geometry)
        raw = moved(codes, state, move, self.geometry)
        board = self._board(freeze(hold, state, raw))
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

    def _board(self, state: ChessState) -> Board:
        # Pieces are read from the packed board, which XLA computes once; it would repeat a move for every set.
        return Board(unpack(state.board, self.size), state.castling, state.passing)

    # Repetitions

    def _delta(self, state: ChessState, move: ChessMove) -> UInt32[Array, "2"]:
        """What a move adds to the hash of the pieces."""
        me = self.to_play(state)

        def keys(colour: Array, kind: Any, square: Array) -> Array:
            seen = jnp.where(me == 0, square, flipped(square, self.size))
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

    def _history(self, state: ChessState) -> UInt32[Array, "history 2"]:
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
        stuck = ~moves.any()
        found = jnp.where(state.moves >= self.max_moves, LONGEST, RUNNING)
        found = jnp.where(too_little(codes, self.size), MATERIAL, found)
        found = jnp.where(times >= 2, REPETITION, found)
        found = jnp.where(state.clock >= REVERSIBLE, FIFTY, found)
        return jnp.where(stuck, jnp.where(moves.check, CHECKMATE, STALEMATE), found).astype(jnp.int8)

    def legal_actions(self, state: ChessState) -> Bool[Array, " actions"]:
        board = self._board(state)
        return legal_mask(find_moves(board, self.geometry), board.codes, self.geometry) & ~self.is_over(state)

    def to_play(self, state: ChessState) -> Int32[Array, ""]:
        return (state.ply & 1).astype(jnp.int32)

    def is_over(self, state: ChessState) -> Bool[Array, ""]:
        return state.end != RUNNING

    def returns(self, state: ChessState) -> Float32[Array, "2"]:
        white = jnp.where(state.end == CHECKMATE, 2.0 * self.to_play(state) - 1, 0)
        return jnp.stack([white, -white]).astype(jnp.float32)

    def estimate(self, state: ChessState) -> Float32[Array, "2"]:
        mine = material(unpack(state.board, self.size))
        white = jnp.where(self.to_play(state) == 0, mine, -mine)
        return jnp.stack([white, -white])

    # What a network sees

    def observe(self, state: ChessState) -> Observation:
        return observe(state, unpack(state.board, self.size), self.geometry)

    def look(self, state: ChessState) -> PositionInfo:
        board = self._board(state)
        return self._look(state, board.codes, find_moves(board, self.geometry))

    def _look(self, state: ChessState, codes: Array, moves: Moves) -> PositionInfo:
        over = self.is_over(state)
        legal = legal_mask(moves, codes, self.geometry) & ~over
        return PositionInfo(legal, observe(state, codes, self.geometry), over, self.returns(state))

    def step_and_look(
        self, states: ChessState, actions: Int32[Array, " batch"], stay: Bool[Array, " batch"] | None = None
    ) -> tuple[ChessState, PositionInfo]:
        stay = jnp.zeros(actions.shape, bool) if stay is None else stay
        fused, plain = self.fused_step_and_look, self.plain_step_and_look
        return lax.platform_dependent(states, actions, stay, cuda=fused, default=plain)

    def plain_step_and_look(
        self, states: ChessState, actions: Int32[Array, " batch"], stay: Bool[Array, " batch"]
    ) -> tuple[ChessState, PositionInfo]:
        """Finds the legal moves of the new position once, for its end and for the mask."""

        def one(state: ChessState, action: Array, hold: Array) -> tuple[ChessState, PositionInfo]:
            after, codes, moves = self._advance(state, action, hold)
            return after, self._look(after, codes, moves)

        return jax.vmap(one)(states, actions, jax.vmap(self.is_over)(states) | stay)

    def fused_step_and_look(
        self, states: ChessState, actions: Int32[Array, " batch"], stay: Bool[Array, " batch"]
    ) -> tuple[ChessState, PositionInfo]:
        """`step_and_look` as one GPU program."""
        keys = self._piece_keys, self._other_keys
        moved, seen = chess_gpu.move_and_look(self.geometry, self.max_moves, states, actions, stay, keys)
        moved = moved._replace(history=jax.vmap(self._history)(moved))
        planes = seen.unpacked().reshape(-1, *self.planes_shape)
        observation = Observation(planes, moved.clock[:, None] / jnp.float32(chess_lc0.RULE_50_SCALE))
        over, returns = jax.vmap(self.is_over)(moved), jax.vmap(self.returns)(moved)
        return moved, PositionInfo(seen.legal > 0, observation, over, returns)

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
        places = 4 * np.arange(self.size, dtype=np.uint32)
        codes = (np.asarray(state.board)[:, None] >> places & 15).reshape(-1).astype(np.int8)
        a, b, c, d = map(int, state.castling)
        number, turn = divmod(int(state.ply), 2)
        return chess_fen.Setup(codes, (a, b, c, d), int(state.passing), turn, int(state.clock), number + 1)

    def fen(self, state: ChessState) -> str:
        """The position in FEN."""
        return chess_fen.text(self.setup(state))

    def render(self, state: ChessState) -> str:
        setup = self.setup(state)
        squares = setup.from_white().codes.reshape(self.size, self.size)[::-1].tolist()
        cells = [[chess_fen.letter(code) for code in row] for row in squares]
        rows = [str(self.size - row) for row in range(self.size)]
        notes = {"to play": PLAYERS[setup.turn], "fen": chess_fen.text(setup)}
        return render_grid(cells, LETTERS[: self.size], rows, notes)

    def from_text(self, text: str) -> ChessState:
        """The position of the line `fen: ...`, which is all that counts."""
        fens = [line.removeprefix("fen:").strip() for line in text.splitlines() if line.startswith("fen:")]
        if len(fens) != 1:
            raise ValueError(f"{self.name}: expected one line 'fen: ...' with a position")
        try:
            return self.position(chess_fen.parse(fens[0], self.size))
        except ValueError as error:
            wanted = "expected one line 'fen: ...' with a position"
            raise ValueError(f"{self.name}: {wanted}, got {fens[0][:100]!r}: {error}") from None

    def _action_name(self, state: ChessState, action: int) -> str:
        return chess_names.uci(self.geometry, self.setup(state), action, getattr(self.options, "chess960", False))

    def san(self, state: ChessState, action: int) -> str:
        """A legal action in standard algebraic notation, such as `Nf3` or `Qxf7#`."""
        return self.line(state, [action])[0]

    def line(self, state: ChessState, actions: Sequence[int]) -> list[str]:
        """`san` of actions that follow one another. Raises ValueError if one is not legal."""
        moments, names = self.replayed(state, actions), []
        for action, now, after in zip(actions, moments, moments[1:], strict=False):
            legal = [int(action) for action in np.flatnonzero(now.legal)]
            name = chess_names.san(self.geometry, self.setup(now.state), action, legal)
            names.append(name + ("#" if int(after.state.end) == CHECKMATE else "+" if after.check else ""))
        return names

    def replayed(self, state: ChessState, actions: Sequence[int]) -> "list[ChessMoment]":
        """The positions from `state` on. Raises ValueError if an action is not legal."""
        found = [self.moment(state)]
        for number, action in enumerate(actions, 1):
            if not (0 <= action < self.num_actions and found[-1].legal[action]):
                raise ValueError(f"{self.name}: move {number}: action {action} is not legal")
            found.append(self.after(found[-1], action))
        return found

    def moment(self, state: ChessState) -> "ChessMoment":
        """A position with its legal actions."""
        return self._look_from(state, np.int32(0), np.True_)

    def after(self, moment: "ChessMoment", action: int) -> "ChessMoment":
        """The position after a legal action."""
        return self._look_from(moment.state, np.int32(action), np.False_)

    def _look_from(self, state: ChessState, action: np.int32, hold: np.bool_) -> "ChessMoment":
        return jax.device_get(self._forward(state, action, hold | np.asarray(state.end != RUNNING)))

    @cached_property
    def _forward(self) -> Callable[..., "ChessMoment"]:
        """The position after an action, or the same one to hold it; compiled for one position."""

        def forward(state: ChessState, action: Array, hold: Array) -> ChessMoment:
            after, codes, moves = self._advance(state, action, hold)
            legal = legal_mask(moves, codes, self.geometry) & ~self.is_over(after)
            return ChessMoment(after, legal, moves.check)

        return quick_jit(forward)

    def resumed(self, state: ChessState) -> ChessState:
        """The position with any draw by rule forgotten, for programs that play on."""
        new_clock = np.where(np.asarray(state.end) == FIFTY, 0, state.clock).astype(np.uint8)
        return state._replace(end=np.int8(RUNNING), clock=new_clock, moves=np.int16(0))

    def _legal_list(self, state: ChessState) -> list[int]:
        return [int(action) for action in np.flatnonzero(self.moment(state).legal)]

    def parse_action(self, state: ChessState, text: str) -> int:
        """The legal action that the text names, in UCI or in standard algebraic notation."""
        setup, legal = self.setup(state), self._legal_list(state)
        found = chess_names.find(self.geometry, setup, text, legal)
        if found is None:
            names = [chess_names.uci(self.geometry, setup, action, False) for action in legal]
            hint = f"legal are {', '.join(names[:8])}{' ...' * (len(names) > 8)}" if names else "the game is over"
            raise ValueError(f"{self.name}: {text.strip()!r} is not a legal move here; {hint}")
        return found
