"""The commands, for any game. Player 0 is black, or the first; moves have the names that the game gives them."""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from tengen import __version__, games
from tengen.config.settings.engine import EngineSettings, PlaySettings
from tengen.engine.engine import Engine
from tengen.engine.gtp import clock
from tengen.engine.gtp.protocol import GtpError
from tengen.engine.gtp.report import GtpReport, ReportOptions, winrate, wish
from tengen.engine.position import IllegalMove
from tengen.engine.search_report import SearchReport
from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.run.networks import FoundNetwork

_RESIGN_AFTER = 3  # thoughts in a row that see no hope
_FOR_EVER = 10**8
COLOURS = {"b": 0, "black": 0, "first": 0, "w": 1, "white": 1, "second": 1}


Words = Callable[[GtpReport, SearchReport, ReportOptions], str]


class AnalysisStream(Protocol):
    """An answer of many lines that are sent as they come."""

    interrupted: threading.Event  # is set when the next command waits

    def begin(self) -> None:
        """Say that the command was understood."""

    def line(self, text: str) -> None:
        """Send a line, which begins the answer if nothing has. Empty ones, which would end it, are left out."""


class GtpCommands:
    """A game at the other end of a line, and the commands for it."""

    def __init__(self, found: FoundNetwork, play: PlaySettings, engine: EngineSettings) -> None:
        self.found, self.settings, self.engine_settings = found, play, engine
        self.clock = clock.Clock(lag=play.lag)
        self.engine = self._engine(found.saved.make_game())
        self.playing = False  # has moved in this game: then it may ponder
        self._marks: list[int] = []  # how many steps the position had before each move
        self._hopeless = 0
        self.commands: dict[str, Callable[[list[str]], str]] = {
            "protocol_version": self._fixed("2"),
            "name": self._fixed("Tengen"),
            "version": self._fixed(f"{__version__} {found.name}"),
            "known_command": self.known_command,
            "list_commands": self.list_commands,
            "quit": self._fixed(""),
            "boardsize": self.boardsize,
            "clear_board": self.clear_board,
            "komi": self.komi,
            "play": self.play,
            "genmove": self.genmove,
            "reg_genmove": self.reg_genmove,
            "undo": self.undo,
            "showboard": self.showboard,
            "time_settings": self.time_settings,
            "kgs-time_settings": self.kgs_time_settings,
            "time_left": self.time_left,
            "final_score": self.final_score,
        }
        self.streams: dict[str, Callable[[list[str], AnalysisStream], None]] = {
            "lz-analyze": self.lz_analyze,
            "kata-analyze": self.kata_analyze,
            "lz-genmove_analyze": self.lz_genmove_analyze,
            "kata-genmove_analyze": self.kata_genmove_analyze,
            "cgos-genmove_analyze": self.cgos_genmove_analyze,
        }

    def _engine(self, game: Game) -> Engine:
        return Engine(self.found, game, self.engine_settings)

    @staticmethod
    def _fixed(text: str) -> Callable[[list[str]], str]:
        return lambda arguments: text

    @property
    def game(self) -> Game:
        """The game that is played."""
        return self.engine.game

    # What controllers ask first

    def known_command(self, arguments: list[str]) -> str:
        """Whether there is such a command."""
        (name,) = exactly(arguments, 1, "a command")
        return "true" if name in self.commands or name in self.streams else "false"

    def list_commands(self, arguments: list[str]) -> str:
        """All commands, one in a line."""
        return "\n".join([*self.commands, *self.streams])

    def boardsize(self, arguments: list[str]) -> str:
        """A board of that size; a new game."""
        (size,) = (whole(text) for text in exactly(arguments, 1, "a size"))
        height, width, _ = self.game.planes_shape
        if size not in (height, width):
            options = dict(self.found.saved.options)
            if "size" not in options:
                raise GtpError("unacceptable size")
            try:
                made = self._engine(games.make(self.found.saved.game, **{**options, "size": size}))
            except (TengenError, ValueError):
                raise GtpError("unacceptable size") from None
            made.warm_up()
            self.engine = made
        return self.clear_board([])

    def clear_board(self, arguments: list[str]) -> str:
        """A new game."""
        self.engine.reset()
        self._marks.clear()
        self._hopeless, self.playing = 0, False
        return ""

    def komi(self, arguments: list[str]) -> str:
        """Only Go has it."""
        raise GtpError(f"{self.game.name} has no komi")

    # Moves

    def play(self, arguments: list[str]) -> str:
        """A move that somebody made."""
        colour, name = exactly(arguments, 2, "a color and a move")
        with self._turn_of(self.colour(colour)) as mark:
            self._move(self.action(name), mark)
        return ""

    def genmove(self, arguments: list[str]) -> str:
        """Choose a move and make it."""
        player = self.colour(*exactly(arguments, 1, "a color"))
        return self._answer(player)

    def reg_genmove(self, arguments: list[str]) -> str:
        """Choose a move, and do not make it."""
        player = self.colour(*exactly(arguments, 1, "a color"))
        with self._turn_of(player, back=True):
            return self.names([_choice(self._think(player))])[0]

    def undo(self, arguments: list[str]) -> str:
        """Take the last move back, whoever made it."""
        if not self._marks:
            raise GtpError("cannot undo")
        self.engine.rewind(self._marks.pop())
        return ""

    @contextlib.contextmanager
    def _turn_of(self, player: int, back: bool = False) -> Iterator[int]:
        """It is that player's turn; gives how many steps the position had before. If something fails, or if it shall
        go `back`, all is as it was."""
        mark = len(self.engine.position.steps)
        try:
            self.to_move(player)
            yield mark
        except BaseException:
            back = True
            raise
        finally:
            if back and len(self.engine.position.steps) > mark:
                self.engine.rewind(mark)

    def _answer(
        self,
        player: int,
        last: Callable[[SearchReport], None] = lambda thought: None,
        each: Callable[[SearchReport], None] | None = None,
        every: float = 0.5,
    ) -> str:
        """Think for a player and make the move: its name, or `resign`. `last` sees the thought before that."""
        start = time.perf_counter()
        with self._turn_of(player) as mark:
            thought = self._think(player, each, every)
            last(thought)
            self._hopeless = self._hopeless + 1 if winrate(thought.value) < self.settings.resign else 0
            self.playing = True
            if self._hopeless >= _RESIGN_AFTER:
                name = "resign"
            else:
                (name,) = self.names([_choice(thought)])
                self._move(_choice(thought), mark)
        self.clock.spend(player, time.perf_counter() - start)
        return name

    def _think(
        self, player: int, each: Callable[[SearchReport], None] | None = None, every: float = 0.5
    ) -> SearchReport:
        visits, seconds = self.settings.visits, self.settings.seconds
        allowed = self.clock.seconds(player, self.moves_left())
        if allowed is not None:
            seconds = allowed if seconds is None else min(seconds, allowed)
        return self.engine.think(visits, seconds, each=each, every=every)

    def _move(self, action: int, mark: int) -> None:
        try:
            self.engine.play(action)
        except IllegalMove:
            raise GtpError("illegal move") from None
        self._marks.append(mark)

    def ponder(self, stream: AnalysisStream) -> None:
        """Think for the opponent until somebody says something."""
        if self.settings.ponder and self.playing and not self.engine.position.over:
            self.engine.think(_FOR_EVER, stop=stream.interrupted)

    # What may be different in a game

    def colour(self, text: str) -> int:
        """The player of that name."""
        if text.lower() not in COLOURS:
            raise GtpError("invalid color")
        return COLOURS[text.lower()]

    def action(self, text: str) -> int:
        """The legal action of that name."""
        try:
            return self.game.parse_action(self.engine.state, text)
        except ValueError as error:
            legal = "not legal" in str(error) or "over" in str(error)
            raise GtpError("illegal move" if legal else f"invalid move: {error}") from None

    def names(self, actions: Sequence[int]) -> list[str]:
        """What moves are called that follow one another from here."""
        return self.engine.position.names(actions)

    def to_move(self, player: int) -> None:
        """See to it that it is that player's turn."""
        if self.engine.position.over:
            raise GtpError("the game is over")
        if self.engine.position.player != player:
            raise GtpError(f"it is {'black' if player else 'white'}'s turn")

    def moves_left(self) -> float:
        """About how many moves a player has still to make."""
        return min(max((self.game.max_moves - len(self.engine.actions)) / 2, 4.0), 40.0)

    def showboard(self, arguments: list[str]) -> str:
        """The position as text."""
        return "\n" + self.game.render(self.engine.state)

    def final_score(self, arguments: list[str]) -> str:
        """Who has won."""
        if not self.engine.position.over:
            raise GtpError("cannot score: the game is not over")
        black = float(self.game.returns(self.engine.state)[0])
        return "0" if black == 0 else f"{'B' if black > 0 else 'W'}+{abs(black):g}"

    # Time

    def time_settings(self, arguments: list[str]) -> str:
        """A clock, or none."""
        self.clock = clock.standard(arguments, self.settings.lag)
        return ""

    def kgs_time_settings(self, arguments: list[str]) -> str:
        """The same as KGS says it."""
        self.clock = clock.kgs(arguments, self.settings.lag)
        return ""

    def time_left(self, arguments: list[str]) -> str:
        """What is left to a player."""
        colour, seconds, stones = exactly(arguments, 3, "a color, seconds and stones")
        try:
            left = float(seconds)
        except ValueError:
            left = math.nan
        if not math.isfinite(left):
            raise GtpError("syntax error: expected seconds")
        self.clock.left(self.colour(colour), left, whole(stones))
        return ""

    # Analysis

    def lz_analyze(self, arguments: list[str], stream: AnalysisStream) -> None:
        """Leela Zero's report, again and again until the next command."""
        self._analyze(wish(arguments, self.colour), stream, GtpReport.leela)

    def kata_analyze(self, arguments: list[str], stream: AnalysisStream) -> None:
        """KataGo's report."""
        self._analyze(wish(arguments, self.colour), stream, GtpReport.katago)

    def _analyze(self, wanted: ReportOptions, stream: AnalysisStream, words: Words) -> None:
        with self._turn_of(self._player(wanted), back=True):
            say = self._say(wanted, stream, words)
            stream.begin()
            say(self.engine.think(_FOR_EVER, stop=stream.interrupted, each=say, every=wanted.every))
            # Whatever there is to say has been said; the answer goes on until the next command.
            stream.interrupted.wait()

    def _say(self, wanted: ReportOptions, stream: AnalysisStream, words: Words) -> Callable[[SearchReport], None]:
        report = GtpReport(self.engine, self.names)
        return lambda thought: stream.line(words(report, thought, wanted))

    def _player(self, wanted: ReportOptions) -> int:
        return self.engine.position.player if wanted.player is None else wanted.player

    def lz_genmove_analyze(self, arguments: list[str], stream: AnalysisStream) -> None:
        """`genmove` with Leela Zero's report on the way."""
        self._genmove_analyze(wish(arguments, self.colour), stream, GtpReport.leela)

    def kata_genmove_analyze(self, arguments: list[str], stream: AnalysisStream) -> None:
        """`genmove` with KataGo's report on the way."""
        self._genmove_analyze(wish(arguments, self.colour), stream, GtpReport.katago)

    def _genmove_analyze(self, wanted: ReportOptions, stream: AnalysisStream, words: Words) -> None:
        say = self._say(wanted, stream, words)
        stream.line(f"play {self._answer(self._player(wanted), say, say, wanted.every)}")

    def cgos_genmove_analyze(self, arguments: list[str], stream: AnalysisStream) -> None:
        """`genmove` with CGOS' report."""
        report = GtpReport(self.engine, self.names)
        player = self._player(wish(arguments, self.colour))
        stream.line(f"play {self._answer(player, lambda thought: stream.line(report.cgos(thought)))}")


def _choice(thought: SearchReport) -> int:
    if thought.action is None:
        raise GtpError("the game is over")
    return thought.action


def exactly(arguments: list[str], count: int, what: str) -> list[str]:
    """The first `count` arguments; there may be more, as GTP allows."""
    if len(arguments) < count:
        raise GtpError(f"syntax error: expected {what}")
    return arguments[:count]


def whole(text: str) -> int:
    """The number that a text is."""
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise GtpError("syntax error: expected a whole number")
    return int(text)
