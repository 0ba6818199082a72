"""Foreign engines, how they are started, and the clients of both protocols.

GTP (Go): https://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2/gtp2-spec.html
UCI (chess): https://backscattering.de/chess/uci/ ; a position is given by all moves since the start, so an engine sees
repetitions. Moves are named alike in UCI and in Tengen's chess (`e2e4`, `e1g1` for castling, `e7e8q`).
"""

import abc
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tengen.data.records.records import shorten
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game
from tengen.match.engines import rules
from tengen.match.engines.process import Fault, Process, Refusal, command

RESIGN = "resign"
PROTOCOLS = ("gtp", "uci")
COLOURS = ("b", "w")
_MOST_NODES = 10**9
_MOST_LINES = 10_000  # of one answer
_ANSWER = re.compile(r"([=?])(\d*)(?:\s+(.*))?")
_VERTEX = re.compile(r"[a-hj-z]\d{1,2}|pass|resign", re.IGNORECASE)
_SCORE = re.compile(r"([BW])\+(\d+(?:\.\d+)?|R|Resign|T|Time|F|Forfeit)?|0|draw|jigo", re.IGNORECASE)
_MOVE = re.compile(r"[a-h][1-8][a-h][1-8][qrbn]?", re.IGNORECASE)
_SECOND = 1.0  # for a move, if there is no other limit


@dataclass(frozen=True)
class Terms:
    """What engines are told about time, and how long Tengen waits for them."""

    seconds: float | None = None  # per move, as engines are told; None: as long as they like
    nodes: int | None = None  # per move, for engines that speak UCI
    grace: float = 2.0  # seconds on top of those: this machine has other things to do too
    patience: float = 60.0  # seconds for any answer, and for a move if there are no `seconds`
    options: tuple[tuple[str, str], ...] = ()  # (name, value), for engines that speak UCI

    @property
    def move_limit(self) -> float:
        """Seconds after which an engine that has not moved has lost."""
        return self.patience if self.seconds is None else self.seconds + self.grace

    def check(self) -> None:
        """TengenError if no engine could play under these terms."""
        for name, value in (("--seconds-per-move", self.seconds), ("--patience", self.patience)):
            if value is not None and not (math.isfinite(value) and 0 < value <= 1e6):
                raise TengenError(f"{name}: expected a number of seconds above 0, got {value:g}")


class NotStarted(TengenError):
    """An engine could not be started, or did not answer the first commands as it should."""

    def __init__(self, text: str, fault: Fault) -> None:
        super().__init__(f"{text}: did not start: {fault}")
        self.fault = fault


class ForeignEngine(abc.ABC):
    """One process that plays one game after another. Players are 0 and 1; moves have the names that the game uses.

    All methods raise Fault, after which the engine cannot be used any more.
    """

    about = ""  # its name and version, as it gives them
    remarks: tuple[str, ...] = ()  # how its rules may differ from those of the game

    def __init__(self, process: Process, terms: Terms) -> None:
        self._process, self._terms = process, terms

    @abc.abstractmethod
    def begin(self) -> None:
        """Begins a new game."""

    @abc.abstractmethod
    def tell(self, player: int, move: str) -> None:
        """Plays a move that the engine has not chosen."""

    @abc.abstractmethod
    def choose(self, player: int) -> str:
        """Its move, which counts as played, or RESIGN."""

    def opinion(self) -> str | None:
        """Who has won, in its view, as `B+3.5`; None if it has none, or its protocol no command for it."""
        return None

    def close(self) -> None:
        self._process.close("quit")


def split(text: str) -> tuple[str, int | None, str]:
    """(protocol, nodes per move, command) of the text of an engine, such as `uci@100:stockfish`. OptionError."""
    kind, _, line = text.partition(":")
    protocol, at, nodes = kind.partition("@")
    if not at:
        return protocol, None, line
    if protocol != "uci" or not (nodes.isascii() and nodes.isdigit() and 0 < int(nodes) <= _MOST_NODES):
        raise OptionError(f"{text}: expected the nodes per move of an engine that speaks UCI, as in uci@100:stockfish")
    return protocol, int(nodes), line


def is_foreign(text: str) -> bool:
    """Whether a text names an engine, as `gtp:gnugo --mode gtp` and `uci@100:stockfish` do."""
    return text.partition(":")[0].partition("@")[0] in PROTOCOLS and ":" in text


def check(text: str, game: Game) -> None:
    """TengenError if that engine cannot play the game, or there is no such program."""
    protocol, _, line = split(text)
    fits = game.name == "go" if protocol == "gtp" else game.name == "chess"
    if not fits:
        plays = "Go (--game go)" if protocol == "gtp" else "chess (--game chess)"
        raise TengenError(f"{text}: engines that speak {protocol.upper()} play {plays}, and this is {game.name}")
    if getattr(game.options, "chess960", False):
        raise TengenError(f"{text}: engines are told games from the usual position, so chess960 must be false")
    command(line)


class GtpClient:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._number = 0

    def ask(self, command: str, seconds: float) -> str:
        """The answer to a command; several lines are one text. Refusal if the engine answers with an error."""
        self._number += 1
        end = time.monotonic() + seconds
        self._process.send(f"{self._number} {command}", seconds)
        waiting = f"did not answer {shorten(command)} within {seconds:g} s"
        line = ""
        while not line.strip():  # the empty line that ends the previous answer
            line = self._process.line(end, waiting)
        found = _ANSWER.fullmatch(line.rstrip())
        if found is None or found[2] not in ("", str(self._number)):  # some engines do not repeat the number
            raise Fault("nonsense", f"answered {shorten(command)} with {shorten(line)}, which is not GTP")
        lines = [found[3] or ""]
        while (line := self._process.line(end, waiting)).strip():
            lines.append(line.rstrip())
            if len(lines) > _MOST_LINES:
                raise Fault("nonsense", f"answered {shorten(command)} with more than {_MOST_LINES} lines")
        answer = "\n".join(lines).strip()
        if found[1] == "?":
            raise Refusal(command, answer)
        return answer

    def close(self) -> None:
        self._process.close("quit")


class GtpEngine(ForeignEngine):
    """A Go engine, started by the command `line`. It is told the rules of the game if possible."""

    def __init__(self, process: Process, game: Game, terms: Terms, line: str = "") -> None:
        super().__init__(process, terms)
        self._client = GtpClient(process)
        self._options: Any = game.options
        name = self._ask("name")
        self.about = f"{name} {self._ask('version')}".strip()[:100]
        version = self._ask("protocol_version")
        if version != "2":
            raise Fault("nonsense", f"speaks version {shorten(version)} of GTP, expected 2")
        self._known = set(self._ask("list_commands").lower().split())
        for needed in ("boardsize", "clear_board", "komi", "play", "genmove"):
            if needed not in self._known:
                raise Fault("nonsense", f"does not know the command {needed}")
        self.remarks = rules.settle(self._ask, self._known, name, line, self._options)
        self.begin()

    def begin(self) -> None:
        try:
            self._ask(f"boardsize {self._options.size}")
        except Refusal as refusal:
            size = self._options.size
            raise TengenError(f"{self.about} cannot play on a {size}x{size} board: {refusal.answer}") from None
        self._ask("clear_board")
        self._ask(f"komi {self._options.komi:g}")
        if self._terms.seconds is not None and "time_settings" in self._known:
            # No main time, and this many seconds for every stone; GTP has whole numbers only.
            self._ask(f"time_settings 0 {max(1, int(self._terms.seconds))} 1")

    def tell(self, player: int, move: str) -> None:
        self._ask(f"play {COLOURS[player]} {move}")

    def choose(self, player: int) -> str:
        answer = self._client.ask(f"genmove {COLOURS[player]}", self._terms.move_limit)
        if not _VERTEX.fullmatch(answer):
            raise Fault("nonsense", f"answered genmove with {shorten(answer)}")
        return RESIGN if answer.lower() == RESIGN else answer

    def opinion(self) -> str | None:
        if "final_score" not in self._known:
            return None
        answer = self._ask("final_score")
        return answer if _SCORE.fullmatch(answer) else None

    def _ask(self, command: str) -> str:
        return self._client.ask(command, self._terms.patience)


def points(score: str) -> float | None:
    """By how much Black has won: `W+3.5` is -3.5, `0` a draw; None if the score does not say."""
    found = _SCORE.fullmatch(score.strip())
    if found is None:
        return None
    if found[1] is None:
        return 0.0
    try:
        return (1 if found[1].upper() == "B" else -1) * float(found[2])
    except (TypeError, ValueError):
        return None


class UciEngine(ForeignEngine):
    def __init__(self, process: Process, terms: Terms) -> None:
        super().__init__(process, terms)
        self._moves: list[str] = []
        self._send("uci")
        options: set[str] = set()
        for line in self._until("uciok"):
            if line.startswith("id name "):
                self.about = line.removeprefix("id name ").strip()[:100]
            elif line.startswith("option name "):
                options.add(line.removeprefix("option name ").partition(" type ")[0].strip().lower())
        for name, value in terms.options:
            if name.lower() not in options:
                raise Fault("nonsense", f"has no option {shorten(name)}; it has {', '.join(sorted(options)) or 'none'}")
            self._send(f"setoption name {name} value {value}")
        self.begin()

    def begin(self) -> None:
        self._moves = []
        self._send("ucinewgame")
        self._send("isready")
        self._until("readyok")

    def tell(self, player: int, move: str) -> None:
        del player
        self._moves.append(move)

    def choose(self, player: int) -> str:
        del player
        terms = self._terms
        self._send("position startpos" + (f" moves {' '.join(self._moves)}" if self._moves else ""))
        limits = [] if terms.nodes is None else [f"nodes {terms.nodes}"]
        if terms.seconds is not None or terms.nodes is None:
            limits.append(f"movetime {max(1, round(1000 * (terms.seconds or _SECOND)))}")
        self._send(f"go {' '.join(limits)}")
        *_, last = self._until("bestmove", terms.move_limit)
        move = [*last.split(), ""][1]
        if not _MOVE.fullmatch(move):
            raise Fault("nonsense", f"answered go with {shorten(last)}")
        self._moves.append(move.lower())
        return move.lower()

    def _send(self, line: str) -> None:
        self._process.send(line, self._terms.patience)

    def _until(self, word: str, seconds: float | None = None) -> list[str]:
        """Its lines up to the one that begins with `word`; UCI asks to skip unknown ones."""
        seconds = self._terms.patience if seconds is None else seconds
        end = time.monotonic() + seconds
        last, kept = "", []
        while True:
            said = f", but {shorten(last)}" if last else ""
            line = self._process.line(end, f"did not say {word} within {seconds:g} s{said}").strip()
            last = line or last
            if line.startswith(("id ", "option ", word)) and len(kept) < _MOST_LINES:
                kept.append(line)
            if line.split(" ")[0] == word:
                return [*kept[:-1], line]


def start(text: str, game: Game, terms: Terms, made: Callable[[Process], None] = lambda process: None) -> ForeignEngine:
    """Starts the engine that a text names; `made` gets the process before its first answer. NotStarted, TengenError."""
    protocol, nodes, line = split(text)
    terms = terms if nodes is None else replace(terms, nodes=nodes)
    running = Process(command(line))
    made(running)
    try:
        if protocol == "gtp":
            return GtpEngine(running, game, terms, line)
        return UciEngine(running, terms)
    except BaseException as error:
        running.close()
        if isinstance(error, Fault):
            raise NotStarted(text, error) from None
        raise
