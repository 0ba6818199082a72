"""GTP on the standard input and output: a controller sends commands, an engine answers.

These are the commands for any game. Player 0 is black; moves have the names that the game gives them.
"""

import contextlib
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

from tengen import __version__, files, games
from tengen.config.settings.match import EngineSettings, PlaySettings
from tengen.engine.engine import Engine, SearchReport
from tengen.engine.gtp import protocol
from tengen.engine.gtp.protocol import GtpAnswer, GtpCommand, GtpError, exactly, outcome, real, whole
from tengen.engine.gtp.report import GtpReport, ReportOptions, parse_options, winrate
from tengen.engine.lines import InputLines, standard_input, write_out
from tengen.engine.position import IllegalMove
from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.run.networks import FoundNetwork, find_network

_RESIGN_AFTER = 3  # hopeless searches in a row
_FOR_EVER = 10**8
COLOURS = {"b": 0, "black": 0, "first": 0, "w": 1, "white": 1, "second": 1}

Words = Callable[[GtpReport, SearchReport, ReportOptions], str]


class GtpCommands:
    """One game, and the commands for it."""

    def __init__(self, found: FoundNetwork, play: PlaySettings, engine: EngineSettings) -> None:
        self.found, self.settings, self.engine_settings = found, play, engine
        self.clock = protocol.Clock(lag=play.lag)
        self.engine = self._engine(found.saved.make_game())
        self.playing = False  # has moved in this game, and may ponder
        self._marks: list[int] = []  # how many steps the position had before each move
        self._hopeless = 0
        self.commands: dict[str, Callable[[list[str]], str | None]] = {
            "protocol_version": lambda arguments: "2",
            "name": lambda arguments: "Tengen",
            "version": lambda arguments: f"{__version__} {found.name}",
            "known_command": self.known_command,
            "list_commands": self.list_commands,
            "quit": lambda arguments: "",
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
        self.streams: dict[str, Callable[[list[str], GtpAnswer], None]] = {
            "lz-analyze": partial(self._analyze, GtpReport.leela),
            "kata-analyze": partial(self._analyze, GtpReport.katago),
            "lz-genmove_analyze": partial(self._genmove_analyze, GtpReport.leela),
            "kata-genmove_analyze": partial(self._genmove_analyze, GtpReport.katago),
            "cgos-genmove_analyze": self._cgos_genmove_analyze,
        }

    def _engine(self, game: Game) -> Engine:
        return Engine(self.found, game, self.engine_settings)

    @property
    def game(self) -> Game:
        return self.engine.game

    # Administration

    def known_command(self, arguments: list[str]) -> str:
        (name,) = exactly(arguments, 1, "a command")
        return "true" if name in self.commands or name in self.streams else "false"

    def list_commands(self, arguments: list[str]) -> str:
        return "\n".join([*self.commands, *self.streams])

    def boardsize(self, arguments: list[str]) -> None:
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
        self.clear_board([])

    def clear_board(self, arguments: list[str]) -> None:
        self.engine.reset()
        self._marks.clear()
        self._hopeless, self.playing = 0, False

    def komi(self, arguments: list[str]) -> None:
        raise GtpError(f"{self.game.name} has no komi")

    # Moves

    def play(self, arguments: list[str]) -> None:
        colour, name = exactly(arguments, 2, "a color and a move")
        with self._turn_of(self.colour(colour)) as mark:
            self._move(self.action(name), mark)

    def genmove(self, arguments: list[str]) -> str:
        player = self.colour(*exactly(arguments, 1, "a color"))
        return self._answer(player)

    def reg_genmove(self, arguments: list[str]) -> str:
        player = self.colour(*exactly(arguments, 1, "a color"))
        with self._turn_of(player, back=True):
            return self.names([_choice(self._think(player))])[0]

    def undo(self, arguments: list[str]) -> None:
        if not self._marks:
            raise GtpError("cannot undo")
        self.engine.rewind(self._marks.pop())

    @contextlib.contextmanager
    def _turn_of(self, player: int, back: bool = False) -> Iterator[int]:
        """Make it that player's turn; yields the number of steps before. Undone if something fails, or with `back`."""
        mark = len(self.engine.steps)
        try:
            self.to_move(player)
            yield mark
        except BaseException:
            back = True
            raise
        finally:
            if back and len(self.engine.steps) > mark:
                self.engine.rewind(mark)

    def _answer(
        self,
        player: int,
        last: Callable[[SearchReport], None] = lambda report: None,
        each: Callable[[SearchReport], None] | None = None,
        every: float = 0.5,
    ) -> str:
        """Think for a player and play the move: its name, or `resign`. `last` gets the report before that."""
        start = time.perf_counter()
        with self._turn_of(player) as mark:
            report = self._think(player, each, every)
            last(report)
            self._hopeless = self._hopeless + 1 if winrate(report.value) < self.settings.resign else 0
            self.playing = True
            if self._hopeless >= _RESIGN_AFTER:
                name = "resign"
            else:
                (name,) = self.names([_choice(report)])
                self._move(_choice(report), mark)
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

    def ponder(self, stream: GtpAnswer) -> None:
        """Think in the opponent's time until the next command."""
        if self.settings.ponder and self.playing and not self.engine.over:
            self.engine.think(_FOR_EVER, stop=stream.interrupted)

    # Overridden for Go

    def colour(self, text: str) -> int:
        if text.lower() not in COLOURS:
            raise GtpError("invalid color")
        return COLOURS[text.lower()]

    def action(self, text: str) -> int:
        try:
            return self.game.parse_action(self.engine.state, text)
        except ValueError as error:
            legal = "not legal" in str(error) or "over" in str(error)
            raise GtpError("illegal move" if legal else f"invalid move: {error}") from None

    def names(self, actions: Sequence[int]) -> list[str]:
        return self.engine.names(actions)

    def to_move(self, player: int) -> None:
        if self.engine.over:
            raise GtpError("the game is over")
        if self.engine.player != player:
            raise GtpError(f"it is {'black' if player else 'white'}'s turn")

    def moves_left(self) -> float:
        """An estimate of the moves that a player still has to make."""
        return min(max((self.game.max_moves - len(self.engine.actions)) / 2, 4.0), 40.0)

    def showboard(self, arguments: list[str]) -> str:
        return "\n" + self.game.render(self.engine.state)

    def final_score(self, arguments: list[str]) -> str:
        if not self.engine.over:
            raise GtpError("cannot score: the game is not over")
        return outcome(float(self.game.returns(self.engine.state)[0]))

    # Time

    def time_settings(self, arguments: list[str]) -> None:
        self.clock = protocol.standard(arguments, self.settings.lag)

    def kgs_time_settings(self, arguments: list[str]) -> None:
        self.clock = protocol.kgs(arguments, self.settings.lag)

    def time_left(self, arguments: list[str]) -> None:
        colour, seconds, stones = exactly(arguments, 3, "a color, seconds and stones")
        self.clock.left(self.colour(colour), real(seconds, "expected seconds"), whole(stones))

    # Analysis

    def _analyze(self, words: Words, arguments: list[str], stream: GtpAnswer) -> None:
        options = parse_options(arguments, self.colour)
        with self._turn_of(self._player(options), back=True):
            say = self._reporter(options, stream, words)
            stream.begin()
            say(self.engine.think(_FOR_EVER, stop=stream.interrupted, each=say, every=options.every))
            # Even if the search has ended, the answer goes on until the next command.
            stream.interrupted.wait()

    def _genmove_analyze(self, words: Words, arguments: list[str], stream: GtpAnswer) -> None:
        options = parse_options(arguments, self.colour)
        say = self._reporter(options, stream, words)
        stream.line(f"play {self._answer(self._player(options), say, say, options.every)}")

    def _cgos_genmove_analyze(self, arguments: list[str], stream: GtpAnswer) -> None:
        options = parse_options(arguments, self.colour)
        say = self._reporter(options, stream, GtpReport.cgos)
        stream.line(f"play {self._answer(self._player(options), say)}")

    def _reporter(self, options: ReportOptions, stream: GtpAnswer, words: Words) -> Callable[[SearchReport], None]:
        writer = GtpReport(self.engine, self.names)
        return lambda report: stream.line(words(writer, report, options))

    def _player(self, options: ReportOptions) -> int:
        return self.engine.player if options.player is None else options.player


def _choice(report: SearchReport) -> int:
    if report.action is None:
        raise GtpError("the game is over")
    return report.action


class GtpSession:
    """Answers the commands in `source` until `quit` or its end. `write` sends text at once."""

    def __init__(self, commands: GtpCommands, source: Iterable[bytes], write: Callable[[str], None]) -> None:
        self._commands, self._write = commands, write
        self._lines = InputLines(source)

    def run(self) -> None:
        while (line := self._lines.next()) is not None:
            command = protocol.parse(line)
            if command is not None:
                self._write_answer(command)
                if command.name == "quit":
                    return
            if not self._lines.waiting.is_set():
                self._commands.ponder(GtpAnswer(GtpCommand("", "", []), self._write, self._lines.waiting))

    def _write_answer(self, command: GtpCommand) -> None:
        """Answer one command; an error is reported, and the session goes on."""
        answer = GtpAnswer(command, self._write, self._lines.waiting)
        try:
            if command.name in self._commands.streams:
                self._commands.streams[command.name](command.arguments, answer)
                answer.end()
            elif command.name in self._commands.commands:
                said = self._commands.commands[command.name](command.arguments)
                self._write(protocol.success(command, said or ""))
            else:
                raise GtpError("unknown command")
        except TengenError as error:
            answer.fail(str(error))
        except (BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception as error:  # a controller must get its answer even if this program is wrong
            traceback.print_exc(file=sys.stderr)
            answer.fail(f"internal error: {error}")


def make(found: FoundNetwork, play: PlaySettings, engine: EngineSettings) -> GtpCommands:
    from tengen.engine.gtp.go_commands import GoCommands  # which has all of these and more

    return (GoCommands if found.saved.game == "go" else GtpCommands)(found, play, engine)


def serve(net: str, play: PlaySettings, engine: EngineSettings, log: Path | None) -> None:
    """Answer commands. The search is compiled before the first command, which may start a clock."""
    found = find_network(net)
    with contextlib.ExitStack() as stack:
        note = _Log(None if log is None else stack.enter_context(files.open_log(log)))
        commands = make(found, play, engine)
        print(f"Tengen with {found.name} ({found.saved.game}); compiling", file=sys.stderr, flush=True)
        commands.engine.warm_up()
        print("ready", file=sys.stderr, flush=True)

        def write(text: str) -> None:
            write_out(text)
            note(text)

        GtpSession(commands, _noted(standard_input(), note), write).run()


class _Log:
    """Writes to a file, as long as that is possible: no game ends because the disk is full."""

    def __init__(self, file: TextIO | None) -> None:
        self._file = file

    def __call__(self, text: str) -> None:
        if self._file is None:
            return
        try:
            self._file.write(text)
            self._file.flush()
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
            print(f"the log ends here: {error.strerror}", file=sys.stderr, flush=True)


def _noted(source: Iterable[bytes], note: Callable[[str], None]) -> Iterator[bytes]:
    for line in source:
        note("> " + line.decode("utf-8", "replace").rstrip("\r\n") + "\n")
        yield line
