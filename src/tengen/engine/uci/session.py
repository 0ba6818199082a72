"""UCI on the standard input and output. While a thread searches, lines are still read."""

import math
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from itertools import takewhile

import numpy as np

import tengen
from tengen.config.settings.match import EngineSettings, PlaySettings
from tengen.engine.engine import Candidate, Engine, SearchReport
from tengen.engine.lines import InputLines, standard_input, write_out
from tengen.engine.uci import protocol
from tengen.engine.uci.protocol import Lag, UciCommand, UciGo, UciOptions
from tengen.errors import TengenError
from tengen.games import chess_names
from tengen.games.chess import Chess
from tengen.games.chess_position import ChessState
from tengen.run import networks
from tengen.run.networks import find_network

_ANY = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
GAME = "chess"
_FOR_EVER = 2**31 - 1  # visits
_EVERY = 0.5  # seconds between two `info`
_LINE = 12  # moves of a variation that are shown
_STEEP, _CENTIPAWNS = 1.5637541897, 90.0  # as in Lc0: 0.5 is 89 centipawns, 1 is 12780
NONE = "(none)"


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
        """Move to a position in which the engine can think, if it has any move."""
        if self.engine.over:
            state = self.game.resumed(self.engine.state)
            if self.game.moment(state).legal.any():
                self.engine.put(state)

    def legal(self) -> list[int]:
        """The actions that chess allows here, whether or not the game counts as over."""
        moment = self.game.moment(self.game.resumed(self.engine.state))
        return [int(action) for action in np.flatnonzero(moment.legal)]

    def name(self, action: int) -> str:
        return self._name(self.engine.state, action)

    def names(self, actions: tuple[int, ...]) -> list[str]:
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


class UciSession:
    """Answers the lines in `source` until `quit` or its end. `write` sends text at once.

    `make` gives the board. It is called at the first `isready`, so that `uci` is answered at once, however long the
    network takes to compile.
    """

    def __init__(
        self,
        about: list[str],
        make: Callable[[], UciPosition],
        play: PlaySettings,
        source: Iterable[bytes],
        write: Callable[[str], None],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._about, self._make, self._settings = about, make, play
        self._lines = InputLines(source, clock)
        self._write, self._lock = write, threading.Lock()
        self._made: UciPosition | None = None
        self._options = UciOptions()
        self._stop, self._hit = threading.Event(), threading.Event()
        self._thinking: threading.Thread | None = None
        self._bounded = True  # whether the present search ends by itself
        self._clock, self._began = clock, 0.0  # when our clock in the game began to run
        self._lag = Lag()

    def run(self) -> None:
        try:
            while (line := self._lines.next()) is not None:
                command = protocol.parse(line)
                if command is None:
                    continue
                if command.name == "quit":
                    return
                self._answer(command)
            if self._bounded and self._thinking is not None:  # lines came from a file: the last answer is wanted
                self._thinking.join()
        finally:
            self._halt()

    def _answer(self, command: UciCommand) -> None:
        """Answer one command; an error is reported, and the session goes on."""
        try:
            match command.name:
                case "uci":
                    self._say(*self._about, *UciOptions().declared(), "uciok")
                case "isready":
                    if self._thinking is None or not self._thinking.is_alive():
                        _ = self._board
                    self._say("readyok")
                case "ucinewgame":
                    self._halt()
                    self._board.set(None, ())
                    self._board.engine.reset()
                    self._lag.new_game()
                case "setoption":
                    self._halt()
                    self._options = self._options.changed(*protocol.parse_option(command.words))
                case "position":
                    self._halt()
                    if (problem := self._board.set(*protocol.parse_position(command.words))) is not None:
                        self._say(f"info string {_one_line(problem)}")
                case "go":
                    self._began = self._lines.arrived
                    self._halt()
                    self._go(protocol.parse_go(command.words))
                case "stop":
                    self._halt()
                case "ponderhit":
                    self._began = self._lines.arrived
                    self._hit.set()
        except (ValueError, TengenError) as error:
            self._say(f"info string {_one_line(str(error))}")
        except (BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception as error:  # the program must not lose its game because this one is wrong
            self._report(error)

    def _report(self, error: Exception) -> None:
        traceback.print_exc(file=sys.stderr)
        self._say(f"info string internal error: {_one_line(str(error))}")

    @property
    def _board(self) -> UciPosition:
        if self._made is None:
            self._made = self._make()
        self._made.chess960 = self._options.chess960
        return self._made

    def _go(self, go: UciGo) -> None:
        board = self._board
        self._stop.clear()
        self._hit.clear()
        self._bounded = not (go.infinite or go.ponder)
        self._thinking = threading.Thread(target=self._think, args=(board, go), name="thinking", daemon=True)
        self._thinking.start()

    def _halt(self) -> None:
        """End the search, if there is one, after its move has been sent."""
        self._stop.set()
        if self._thinking is not None:
            self._thinking.join()
            self._thinking = None

    def _think(self, board: UciPosition, go: UciGo) -> None:
        """Search and send the best move: `go` is always answered."""
        best = NONE
        try:
            board.go_on()
            best = self._search(board, go)
        except Exception as error:
            self._report(error)
            best = _any_move(board)
        finally:
            if go.infinite or (go.ponder and not self._hit.is_set()):
                self._stop.wait()
            self._say(f"bestmove {best}")

    def _search(self, board: UciPosition, go: UciGo) -> str:
        engine = board.engine
        if engine.over:  # mate, stalemate, or nothing left to mate with
            return _any_move(board)
        draw = engine.look().draw if self._options.show_wdl else 0.0
        player = engine.player
        self._lag.clock_says(player, go.clock[player])
        visits, planned = self._limits(go, player)

        def each(report: SearchReport) -> None:
            self._say(*info_lines(report, self._chosen(board, go, report), draw, self._options, names))

        def names(candidate: Candidate) -> list[str]:
            return board.names(candidate.line[:_LINE])

        if go.ponder:
            engine.think(visits=_FOR_EVER, stop=_Either(self._stop, self._hit), each=each, every=_EVERY)  # pyright: ignore
        if not (go.ponder and self._stop.is_set()):
            seconds = None if planned is None else max(planned - (self._clock() - self._began), 0.0)
            report = engine.think(visits=visits, seconds=seconds, stop=self._stop, each=each, every=_EVERY)
            if planned is not None:
                took = self._clock() - self._began
                self._lag.moved(player, planned, took, go.clock[player], go.increment[player])
        else:
            report = engine.think(visits=1)
        each(report)
        found = self._chosen(board, go, report)
        if not found:
            return _any_move(board)
        line = names(found[0])
        return f"{line[0]} ponder {line[1]}" if len(line) > 1 else line[0]

    def _limits(self, go: UciGo, player: int) -> tuple[int | None, float | None]:
        if go.infinite:
            return _FOR_EVER, None
        seconds = go.limit(player, self._lag.margin(self._options.overhead / 1000))
        if go.nodes is not None or seconds is not None:
            return go.nodes, seconds
        return self._settings.visits, self._settings.seconds  # neither: what the engine does by itself

    def _chosen(self, board: UciPosition, go: UciGo, report: SearchReport) -> list[Candidate]:
        """The best moves first; only those of `searchmoves`, if there are any."""
        if not go.moves:
            return list(report.candidates)
        wanted = [one for one in report.candidates if board.name(one.action) in go.moves]
        if wanted:
            return wanted
        left = [action for action in board.legal() if board.name(action) in go.moves]
        return [Candidate(action, 0, report.value, 0.0, (action,)) for action in left] or list(report.candidates)

    def _say(self, *lines: str) -> None:
        with self._lock:
            self._write("".join(line + "\n" for line in lines))


class _Either:
    def __init__(self, a: threading.Event, b: threading.Event) -> None:
        self._both = (a, b)

    def is_set(self) -> bool:
        return any(event.is_set() for event in self._both)


def _any_move(board: UciPosition) -> str:
    legal = board.legal()
    return board.name(legal[0]) if legal else NONE


def _one_line(text: str) -> str:
    return " ".join(text.split())


def centipawns(value: float) -> int:
    """Of a value in [-1, 1]."""
    return round(_CENTIPAWNS * math.tan(_STEEP * max(-1.0, min(1.0, value))))


def chances(value: float, draw: float) -> tuple[int, int, int]:
    """Win, draw and loss in thousandths; `draw` is what the network thinks of it."""
    draw = min(max(draw, 0.0), 1 - abs(value))
    win = round(1000 * (1 - draw + value) / 2)
    loss = round(1000 * (1 - draw - value) / 2)
    return win, 1000 - win - loss, loss


def info_lines(
    report: SearchReport,
    chosen: list[Candidate],
    draw: float,
    options: UciOptions,
    names: Callable[[Candidate], list[str]],
) -> list[str]:
    """One line for each of the best moves. `draw`: the chance of a draw at the root."""
    found = []
    milliseconds = round(1000 * report.seconds)
    speed = round(report.evaluations / report.seconds) if report.seconds > 0 else 0
    for rank, candidate in enumerate(chosen[: options.multi_pv], 1):
        line = names(candidate)
        number = f" multipv {rank}" if options.multi_pv > 1 else ""
        wdl = " wdl {} {} {}".format(*chances(candidate.value, draw)) if options.show_wdl else ""
        score = f"score cp {centipawns(candidate.value)}{wdl}"
        found.append(
            f"info depth {max(len(line), 1)}{number} {score} nodes {report.visits} "
            f"nps {speed} time {milliseconds} pv {' '.join(line)}"
        )
    return found


def about(found: networks.FoundNetwork) -> list[str]:
    return [f"id name Tengen {tengen.__version__} {found.name}", "id author the authors of Tengen"]


def find(net: str) -> networks.FoundNetwork:
    """The chess network that a person names. TengenError if it plays another game."""
    found = find_network(net, GAME)
    if found.saved.game != GAME:
        raise TengenError(
            f"{net}: a network for {found.saved.game}; UCI is for chess alone, this one plays by `tengen gtp {net}`"
        )
    return found


def make(found: networks.FoundNetwork, settings: EngineSettings) -> UciPosition:
    print(f"{found.name}: compiling", file=sys.stderr, flush=True)
    engine = Engine(found, settings=settings)
    engine.warm_up()
    board = UciPosition(engine)
    board.warm_up()
    print("ready", file=sys.stderr, flush=True)
    return board


def serve(net: str, play: PlaySettings, settings: EngineSettings) -> None:
    found = find(net)
    UciSession(about(found), lambda: make(found, settings), play, standard_input(), write_out).run()
