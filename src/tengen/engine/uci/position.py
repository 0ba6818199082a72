"""The position that a chess program has told of, and the engine that thinks about it."""

from itertools import takewhile

import numpy as np

from tengen.engine.engine import Engine
from tengen.games import chess_names
from tengen.games.chess import Chess
from tengen.games.chess_position import ChessState

_ANY = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"


class UciPosition:
    """Keeps the engine's tree wherever the new position follows from the old one by moves.

    Programs may play on where Tengen's rules end the game: after a repetition, 50 moves, the longest game, or with too
    little material. The game is then resumed.
    """

    def __init__(self, engine: Engine) -> None:
        assert isinstance(engine.game, Chess)
        self.engine = engine
        self.game: Chess = engine.game
        self.chess960 = False  # whether castling is named as the king taking its rook
        self._start: str | None = None  # FEN
        self._moves: tuple[str, ...] = ()
        self._lengths = [1]  # of the engine's list of positions, after each number of these moves

    def set(self, fen: str | None, moves: tuple[str, ...]) -> str | None:
        """Go to a position; what is wrong with it, in words. A wrong move ends the list, a wrong FEN does nothing."""
        if fen != self._start:
            try:
                state = None if fen is None else self.game.from_text(f"fen: {fen}")
            except ValueError as error:
                return str(error)
            self.engine.reset(state)
            self._start, self._moves, self._lengths = fen, (), [1]
        known = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self._moves, moves, strict=False)))
        if known < len(self._moves):  # another move than the one that was pondered on, or moves taken back
            self._moves, self._lengths = self._moves[:known], self._lengths[: known + 1]
            self.engine.rewind(self._lengths[known])
        for move in moves[known:]:
            problem = self._play(move)
            if problem is not None:
                return problem
            self._moves = (*self._moves, move)
            self._lengths.append(len(self.engine.steps))
        return None

    def warm_up(self) -> None:
        """Compile what positions and moves will need, before any clock runs."""
        self.set(_ANY, ("e2e4",))
        self.names(tuple(self.legal()[:1]))
        self.game.resumed(self.engine.state)
        self.set(None, ())

    def go_on(self) -> None:
        """Be at a position in which the engine can think, if there is any move."""
        if self.engine.over:
            state = self.game.resumed(self.engine.state)
            if self.game.moment(state).legal.any():
                self.engine.put(state)

    def legal(self) -> list[int]:
        """The actions that chess allows here, whether or not the game counts as over."""
        moment = self.game.moment(self.game.resumed(self.engine.state))
        return [int(action) for action in np.flatnonzero(moment.legal)]

    def name(self, action: int) -> str:
        """A move as UCI calls it."""
        return self._name(self.engine.state, action)

    def names(self, actions: tuple[int, ...]) -> list[str]:
        """The same for moves that follow one another."""
        return self.engine.names(actions, self._name)

    def _name(self, state: ChessState, action: int) -> str:
        return chess_names.uci(self.game.geometry, self.game.setup(state), action, self.chess960)

    def _play(self, move: str) -> str | None:
        self.go_on()
        if self.engine.over:
            return f"{move} is not possible: the game is over"
        try:
            self.engine.play(self.game.parse_action(self.engine.state, move))
        except ValueError as error:
            return str(error)
        return None
