"""A chess program and an engine that talk. While the engine thinks in a thread of its own, lines are still read."""

import sys
import threading
import traceback
from collections.abc import Callable, Iterable

from tengen.config.settings.engine import PlaySettings
from tengen.engine.gtp.input import InputLines
from tengen.engine.search_report import Candidate, SearchReport
from tengen.engine.uci import protocol, report
from tengen.engine.uci.options import Options
from tengen.engine.uci.position import UciPosition
from tengen.engine.uci.protocol import UciCommand, UciGo
from tengen.errors import TengenError

_FOR_EVER = 2**31 - 1  # visits
_EVERY = 0.5  # seconds between two `info`
_LINE = 12  # moves of a variation that are told
NONE = "(none)"


class UciSession:
    """Answers the lines in `source` until `quit` or its end. `write` sends text at once.

    `make` gives the board; it is asked for when the program first wants to know whether we are ready, so `uci` is
    answered at once however long networks take to compile.
    """

    def __init__(
        self,
        about: list[str],
        make: Callable[[], UciPosition],
        play: PlaySettings,
        source: Iterable[bytes],
        write: Callable[[str], None],
    ) -> None:
        self._about, self._make, self._settings = about, make, play
        self._lines = InputLines(source)
        self._write, self._lock = write, threading.Lock()
        self._made: UciPosition | None = None
        self._options = Options()
        self._stop, self._hit = threading.Event(), threading.Event()
        self._thinking: threading.Thread | None = None
        self._bounded = True  # whether the present search ends by itself

    def run(self) -> None:
        """Answer until there is nothing more to answer."""
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
        """Whatever goes wrong is said, and the session goes on."""
        try:
            match command.name:
                case "uci":
                    self._say(*self._about, *Options().declared(), "uciok")
                case "isready":
                    if self._thinking is None or not self._thinking.is_alive():
                        _ = self._board
                    self._say("readyok")
                case "ucinewgame":
                    self._halt()
                    self._board.set(None, ())
                    self._board.engine.reset()
                case "setoption":
                    self._halt()
                    self._options = self._options.changed(*protocol.parse_option(command.words))
                case "position":
                    self._halt()
                    if (problem := self._board.set(*protocol.parse_position(command.words))) is not None:
                        self._say(f"info string {_one_line(problem)}")
                case "go":
                    self._halt()
                    self._go(protocol.parse_go(command.words))
                case "stop":
                    self._halt()
                case "ponderhit":
                    self._hit.set()
        except (ValueError, TengenError) as error:
            self._say(f"info string {_one_line(str(error))}")
        except (BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception as error:  # the program must not lose its game because this one is wrong
            traceback.print_exc(file=sys.stderr)
            self._say(f"info string internal error: {_one_line(str(error))}")

    @property
    def _board(self) -> UciPosition:
        if self._made is None:
            self._made = self._make()
        return self._made

    def _go(self, go: UciGo) -> None:
        board = self._board
        self._stop.clear()
        self._hit.clear()
        self._bounded = not (go.infinite or go.ponder)
        self._thinking = threading.Thread(target=self._think, args=(board, go), name="thinking", daemon=True)
        self._thinking.start()

    def _halt(self) -> None:
        """End the search, if there is one; its move has been said then."""
        self._stop.set()
        if self._thinking is not None:
            self._thinking.join()
            self._thinking = None

    def _think(self, board: UciPosition, go: UciGo) -> None:
        """Say what is found out, and at last the move: there always is an answer to `go`."""
        best = NONE
        try:
            board.go_on()
            best = self._search(board, go)
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            self._say(f"info string internal error: {_one_line(str(error))}")
            best = _any_move(board)
        finally:
            if go.infinite or (go.ponder and not self._hit.is_set()):
                self._stop.wait()
            self._say(f"bestmove {best}")

    def _search(self, board: UciPosition, go: UciGo) -> str:
        engine = board.engine
        if engine.position.over:  # mate, stalemate, or nothing left to mate with
            return _any_move(board)
        draw = engine.look().draw if self._options.show_wdl else 0.0
        visits, seconds = self._limits(go, engine.position.player)

        def each(thought: SearchReport) -> None:
            self._say(*report.lines(thought, self._chosen(board, go, thought), draw, self._options, names))

        def names(candidate: Candidate) -> list[str]:
            return board.names(candidate.line[:_LINE])

        if go.ponder:
            engine.think(visits=_FOR_EVER, stop=_Either(self._stop, self._hit), each=each, every=_EVERY)  # pyright: ignore
        if not (go.ponder and self._stop.is_set()):
            thought = engine.think(visits=visits, seconds=seconds, stop=self._stop, each=each, every=_EVERY)
        else:
            thought = engine.think(visits=1)
        each(thought)
        found = self._chosen(board, go, thought)
        if not found:
            return _any_move(board)
        line = names(found[0])
        return f"{line[0]} ponder {line[1]}" if len(line) > 1 else line[0]

    def _limits(self, go: UciGo, player: int) -> tuple[int | None, float | None]:
        """(visits, seconds) for the engine."""
        if go.infinite:
            return _FOR_EVER, None
        seconds = go.limit(player, self._options.overhead / 1000)
        if go.nodes is not None or seconds is not None:
            return go.nodes, seconds
        return self._settings.visits, self._settings.seconds  # neither: what the engine does by itself

    def _chosen(self, board: UciPosition, go: UciGo, thought: SearchReport) -> list[Candidate]:
        """The best moves first; only those that the program wants to hear of, if it has said which."""
        if not go.moves:
            return list(thought.candidates)
        wanted = [one for one in thought.candidates if board.name(one.action) in go.moves]
        if wanted:
            return wanted
        left = [action for action in board.legal() if board.name(action) in go.moves]
        return [Candidate(action, 0, thought.value, 0.0, (action,)) for action in left] or list(thought.candidates)

    def _say(self, *lines: str) -> None:
        with self._lock:
            self._write("".join(line + "\n" for line in lines))


class _Either:
    """Set when one of two events is."""

    def __init__(self, a: threading.Event, b: threading.Event) -> None:
        self._both = (a, b)

    def is_set(self) -> bool:
        return any(event.is_set() for event in self._both)


def _any_move(board: UciPosition) -> str:
    """A legal move, if there is one."""
    legal = board.legal()
    return board.name(legal[0]) if legal else NONE


def _one_line(text: str) -> str:
    return " ".join(text.split())
